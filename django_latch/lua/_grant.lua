-- The arguments of request.lua, and its grant where the lock is free. Put after _stamp.lua.
local token, wake, job, owner = ARGV[6], ARGV[12], ARGV[17], ARGV[18]
local lease, limit, wait, claim, hold = whole(7, 1), whole(8, 1), whole(9, 0), whole(10, 1), whole(11, 0)
local ticket, silent, most, longest = whole(13, 0), whole(14, 0), whole(15, 0), whole(16, 0)
local known = 0  -- the ticket that keeps the caller's place

local function record(state, fence, exp)
  return { token = token, state = state, fence = fence, exp = exp, lease = lease, claim = claim, limit = limit,
    ticket = known, since = NOW, hold = state == 'held' and hold > 0 and NOW + hold or 0, wake = wake, owner = owner }
end

local function grant(fence)
  local r = record('held', fence, NOW + lease)
  call('ZADD', H, r.exp, token)
  put(r)
  event(2, 'acquired', r, 'waited', known > 0 and math.max(NOW - math.floor(known / 1000), 0) or 0)
  return r
end

-- The answer to a holder, with the names of other locks whose leases have passed.
local function granted(r)
  local stale = call('ZRANGEBYSCORE', INDEX, '-inf', '(' .. NOW, 'LIMIT', 0, 3)
  return { 'granted', r.fence, r.exp - NOW, unpack(stale) }
end

-- Nobody holds, nobody waits, and this token was never seen: most calls end here.
if ticket == 0 and job == '' and call('HEXISTS', R, token) == 0 and call('EXISTS', H, Q) == 0 then
  local r = grant(stamp())
  call('ZADD', INDEX, r.exp, NAME)
  keep_index()
  keep(false)
  return granted(r)
end
