-- How a hold or a place ends. Put after _tombs.lua and _write.lua.
local holders = {}     -- the live holders, as records; set by sweep()
local listing = ''     -- who stood in R as holders; set by sweep()
local waiting = 0      -- how many wait; set by sweep()
local joined = false   -- whether a place in the queue was written
local touched = false  -- whether anything of this lock was written

-- End a hold or a place. A hold that must last longer leaves its permit cooling, owned by nobody.
local function finish(r, reason, resent)
  if r.state == 'queued' then
    waiting = waiting - call('ZREM', Q, r.token)
    call('ZREM', V, r.token)
  end
  for i, h in ipairs(holders) do
    if h.token == r.token then table.remove(holders, i) break end
  end
  bury(r, reason, resent)
  touched = true
  -- For no longer than was asked for, though the server's clock may have been set back.
  local left = r.state == 'held' and math.min(r.hold - NOW, r.hold - r.since) or 0
  if left > 0 then
    local c = { token = 'cooling:' .. r.fence, state = 'cooling', fence = r.fence, exp = NOW + left,
      lease = left, claim = 0, limit = r.limit, ticket = '0', since = r.since, hold = 0, wake = '', owner = r.owner }
    put(c)
    holders[#holders + 1] = c
  end
end

-- The time of a hold, an offer or a cooling permit has passed.
local function expire(r)
  if r.state == 'cooling' then
    call('HDEL', R, r.token)
    touched = true
    return
  end
  if r.state == 'held' then event(1, 'expired', r, 'held', math.max(r.exp - r.since, 0)) end
  finish(r, r.state == 'held' and 'expired' or 'lapsed')
end
