-- The grant of request.lua, and its answer. Put after _free.lua and _write.lua.
local known = '0'  -- the ticket that keeps the caller's place

local function grant(fence)
  local r = { token = token, state = 'held', fence = fence, exp = NOW + lease, lease = lease, claim = claim,
    limit = limit, ticket = known, since = MS, hold = hold == '0' and '0' or NOW + hold, wake = wake, owner = owner }
  event(2, 'acquired', r, 'waited', known == '0' and 0 or math.max(NOW - math.floor(known / 1000), 0))
  put(r)
  return r
end

-- The answer to a holder, with the names of other locks whose leases have passed; whoever stood in the queue
-- has waited long enough, and looks after no others.
local function granted(r)
  local stale = r.ticket ~= '0' and {} or call('ZRANGEBYSCORE', INDEX, '-inf', '(' .. MS, 'LIMIT', '0', '3')
  return reply('granted', r.fence, r.exp - NOW, unpack(stale))
end
