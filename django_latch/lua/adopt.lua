-- Hand a hold over to a new owner with a token and a fence of its own. The old token ends as `adopted`.
-- PARTS    _common _ends _stamp _turns
-- ARGV     6 old token  7 new token  8 lease ms  9 owner
-- RETURNS  ok fence left now waiters | ended reason fence
local old, token, lease, owner = ARGV[6], ARGV[7], whole(8, 1), ARGV[9]
local r = get(token)
if r or get(old) then call('ZREM', P, '') end  -- a first write that passes when memory is full
r = sweep(token, r)
local from = get(old)
if not r and from and from.state == 'held' and call('ZSCORE', H, old) then
  r = { token = token, state = 'held', fence = stamp(), exp = NOW + lease, lease = lease, claim = from.claim,
    limit = from.limit, ticket = from.ticket, since = NOW, hold = from.hold, wake = '', owner = owner }
  from.hold = 0
  finish(from, 'adopted', true)
  call('ZADD', H, r.exp, token)
  put(r)
  holders[#holders + 1] = r
  event(2, 'adopted', r)
else
  settle(token)
end
close_books()
if r and r.state == 'held' then return { 'ok', r.fence, r.exp - NOW, NOW, call('ZCARD', Q) } end
local last = r or from
if not last then return { 'ended', #holders > 0 and 'taken' or 'missing', 0 } end
return { 'ended', last.state == 'ended' and last.reason or 'missing', last.fence }
