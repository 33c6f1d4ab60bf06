-- Hand a hold over to a new owner with a token and a fence of its own. The old token ends as `adopted`.
-- PARTS    _common _read _tombs _write _stamp _ends _turns _books
-- ARGV     6 lease ms  7 owner  8 new token  9 old token
-- RETURNS  ok fence left now waiters | ended reason fence
local lease, owner, token, old = numbers(6, 6)[6], ARGV[7], ARGV[8], ARGV[9]
local r, list = look(token)
local from = get(old)
if r or from then call('ZREM', P, '') end  -- a first write that passes when memory is full
r = sweep(token, r, list)
from = get(old)
if not r and from and from.state == 'held' and listed(old, list) then
  r = { token = token, state = 'held', fence = stamp(), exp = NOW + lease, lease = lease, claim = from.claim,
    limit = from.limit, ticket = from.ticket, since = NOW, hold = from.hold, wake = '', owner = owner }
  from.hold = 0
  finish(from, 'adopted', true)
  put(r)
  holders[#holders + 1], touched = r, true
  event(2, 'adopted', r)
end
settle(token)
close_books()
if r and r.state == 'held' then return reply('ok', format('%.0f', r.fence), r.exp - NOW, NOW, call('ZCARD', Q)) end
local last = r or from
if not last then return reply('ended', #holders > 0 and 'taken' or 'missing', 0) end
return reply('ended', last.state == 'ended' and last.reason or 'missing', format('%.0f', last.fence))
