-- How a hold or a place ends, and what is remembered of it. Put after _common.lua.
local TOMBS, RESENT_TOMBS = 32, 1000  -- kept; up to twice as many before they are cut back
local holders = {}    -- the live holders, as records; set by sweep()
local waiting = true  -- whether a queue exists; set by sweep()
local buried = false  -- whether a tomb was written

-- Remember how a token ended. `resent`: a copy of its request may still be under way, so the
-- tomb lasts for all of GRACE; the others only serve nicer replies, and are few.
local function bury(r, reason, resent)
  local low, high, most = 0, '(' .. RESENT, TOMBS
  if resent then low, high, most = RESENT, '+inf', RESENT_TOMBS end
  r.held = r.state == 'held' and math.max(math.min(NOW, r.exp) - r.since, 0) or 0
  local tomb = { 'ended', reason, digits(r.fence or 0), digits(r.ticket or 0), r.held }
  call('HSET', R, r.token, table.concat(tomb, '|'))
  call('ZADD', P, low + NOW + GRACE, r.token)
  buried, touched = true, true
  local count = call('ZCOUNT', P, low, high)
  if count < 2 * most then return end
  local oldest = call('ZRANGEBYSCORE', P, low, high, 'LIMIT', 0, count - most)
  call('HDEL', R, unpack(oldest))
  call('ZREM', P, unpack(oldest))
end

-- End a hold or a place. A hold that must last longer leaves its permit cooling, owned by nobody.
local function finish(r, reason, resent)
  call('ZREM', H, r.token)
  if waiting then
    call('ZREM', Q, r.token)
    call('ZREM', V, r.token)
  end
  for i, h in ipairs(holders) do
    if h.token == r.token then table.remove(holders, i) break end
  end
  bury(r, reason, resent)
  if r.state == 'held' and r.hold > NOW then
    local c = { token = 'cooling:' .. digits(r.fence), state = 'cooling', fence = r.fence, exp = r.hold,
      lease = r.hold - NOW, claim = 0, limit = r.limit, ticket = 0, since = r.since, hold = 0, wake = '', owner = r.owner }
    call('ZADD', H, c.exp, c.token)
    put(c)
    holders[#holders + 1] = c
  end
end

-- After H and Q were seen empty: the tombs alone decide how long the keys live.
local function rest()
  call('ZREM', INDEX, NAME)
  local ttl = call('PTTL', R)
  if ttl < 0 or ttl > 2 * GRACE then
    ttl = 1
    for _, band in ipairs({ { '(' .. RESENT, '-inf' }, { '+inf', RESENT } }) do
      local top = call('ZREVRANGEBYSCORE', P, band[1], band[2], 'WITHSCORES', 'LIMIT', 0, 1)
      ttl = math.max(ttl, tonumber(top[2] or 0) % RESENT - NOW)
    end
  end
  ttl = math.max(ttl, buried and GRACE or 0)
  call('PEXPIRE', R, ttl)
  call('PEXPIRE', P, ttl)
end

-- Bring index and deadlines in line with what was written.
local function close_books()
  if not touched then return end
  local last = 0
  for _, h in ipairs(holders) do last = math.max(last, h.exp) end
  waiting = waiting and call('EXISTS', Q) == 1
  if waiting then last = math.max(last, NOW + LIVE) end
  if last == 0 then return rest() end
  call('ZADD', INDEX, last, NAME)
  keep_index()
  keep(waiting)
  if buried then call('PEXPIRE', P, math.max(call('PTTL', P), GRACE)) end
end
