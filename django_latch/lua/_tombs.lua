-- What is remembered of tokens that have ended. Put after _read.lua.
local RESENT_TOMBS = 1000  -- as TOMBS, for those that last
local graves = 0      -- tombs in P; set by sweep()
local buried = false  -- whether a tomb was written

-- Remember how a token ended. `resent`: a copy of its request may still be under way, so the
-- tomb lasts for all of GRACE; the others only serve nicer replies, and are few.
local function bury(r, reason, resent)
  local low, high, most = 0, '(' .. RESENT, TOMBS
  if resent then low, high, most = RESENT, '+inf', RESENT_TOMBS end
  r.held = r.state == 'held' and math.max(math.min(NOW, r.exp) - r.since, 0) or 0
  graves = graves + call('ZADD', P, low + NOW + GRACE, r.token)
  call('HSET', R, r.token, 'ended|' .. reason .. '|' .. (r.fence or '0') .. '|' .. (r.ticket or '0') .. '|' .. r.held)
  buried = true
  if graves < 2 * TOMBS then return end
  local count = call('ZCOUNT', P, low, high)
  if count < 2 * most then return end
  local oldest = call('ZRANGEBYSCORE', P, low, high, 'LIMIT', 0, count - most)
  call('HDEL', R, unpack(oldest))
  graves = graves - call('ZREM', P, unpack(oldest))
end

-- After nobody was seen to hold or wait: the tombs alone decide how long the keys live.
local function rest()
  local ttl, least = call('PTTL', R), buried and GRACE or 1
  if ttl < least or ttl > 3 * GRACE then
    ttl = least
    for _, band in ipairs({ { '(' .. RESENT, '-inf' }, { '+inf', RESENT } }) do
      local top = call('ZREVRANGEBYSCORE', P, band[1], band[2], 'WITHSCORES', 'LIMIT', 0, 1)
      ttl = math.max(ttl, tonumber(top[2] or 0) % RESENT - NOW)
    end
    call('PEXPIRE', R, ttl)
  end
  call('PEXPIRE', P, ttl)
  call('ZREM', INDEX, NAME)
end
