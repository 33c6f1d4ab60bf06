-- The arguments of request.lua, and its grant where the lock is free. Put after _stamp.lua.
local n = numbers(6, 12)
local lease, limit, wait, claim, hold, most, longest = n[6], n[7], n[8], n[9], n[10], n[11], n[12]
if lease == 0 or limit == 0 or claim == 0 then error('LATCHARGS 6') end
local owner, wake, job, token = ARGV[13], ARGV[14], ARGV[15], ARGV[16]
local known = 0  -- the ticket that keeps the caller's place

local function grant(fence, ...)
  -- Numbers are costly to write down: what came as text stays text.
  local r = { token = token, state = 'held', fence = fence, digits = format('%.0f', fence), exp = NOW + lease,
    lease = ARGV[6], claim = ARGV[9], limit = ARGV[7], ticket = known, since = NOW,
    hold = hold > 0 and NOW + hold or '0', wake = wake, owner = owner }
  event(2, 'acquired', r, 'waited', known > 0 and math.max(NOW - math.floor(known / 1000), 0) or 0)
  put(r, ...)
  return r
end

-- The answer to a holder, with the names of other locks whose leases have passed.
local function granted(r)
  local stale = call('ZRANGEBYSCORE', INDEX, '-inf', '(' .. NOW, 'LIMIT', '0', '3')
  return reply('granted', r.digits or format('%.0f', r.fence), r.exp - NOW, unpack(stale))
end

-- Nobody holds, nobody waits, and this token was never seen: most calls end here.
local seen = call('HMGET', R, token, '@')
if not seen[1] and not seen[2] and ARGV[17] == '0' and job == '' and call('EXISTS', Q) == 0 then
  local fence = stamp()
  need = lease
  call('ZADD', INDEX, NOW + lease, NAME)  -- before the grant, which must not be if this fails
  keep_index()
  local r = grant(fence, '@', token)
  keep(P)
  return granted(r)
end
