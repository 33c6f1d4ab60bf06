-- Hand a hold over to a new owner with a token and a fence of its own. The old token ends as `adopted`.
-- PARTS    _common _keep _read _holds _tombs _write _stamp _ends _turns _books
-- ARGV     6 lease ms  7 ms for which the old token is remembered, at least GRACE  8 owner  9 new token  10 old token
--          11 ms for which the permit stays taken at least
-- RETURNS  ok fence left now waiters | ended reason fence
local lease, life = numbers(6, 7)
local hold, owner, token, old = tonumber(numbers(11, 11)), ARGV[8], ARGV[9], ARGV[10]
local r, list = look(token)
local from = get(old)
if r or from then call('ZREM', P, '') end  -- a first write that passes when memory is full
r = sweep(token, r, list)
from = get(old)
if not r and from and from.state == 'held' and listed(old, list) then
  local old_hold = math.min(from.hold, NOW + math.max(from.hold - from.since, 0))  -- the clock may have been set back
  r = { token = token, state = 'held', fence = stamp(), exp = NOW + lease, lease = lease, claim = from.claim,
    limit = from.limit, ticket = from.ticket, since = MS, hold = math.max(old_hold, hold > 0 and NOW + hold or 0),
    wake = '', owner = owner }
  from.hold = 0
  finish(from, 'adopted', true)
  if tonumber(life) > GRACE then  -- a copy of the message that brought it may come as late as that
    call('ZADD', P, RESENT + NOW + life, old)
    need = math.max(need, life - GRACE)
  end
  put(r)
  holders[#holders + 1], touched = r, true
  event(2, 'adopted', r, 'old', from.fence, 'held', from.held)
end
settle(token)
close_books()
if r and r.state == 'held' then return reply('ok', r.fence, r.exp - NOW, NOW, waiting) end
if not r and not from then return reply('ended', #holders > 0 and 'taken' or 'missing', 0) end
return refusal(r or from, list, r and token or old, '')
