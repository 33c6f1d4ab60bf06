-- Sent shortly after a release that offered the lock: if the waiter's wake message is still unread, it may
-- be dead. The next in the queue is told, and asks with the offer's fence (`silent`, see request.lua).
-- PARTS    _common _read
-- ARGV     6 fence of the offer
-- RETURNS  told: 1 or 0
local base = string.gsub(STAMP, 'stamp$', 'W:')
local head = call('ZRANGE', Q, 0, 0)[1]
local second = head and parse(head, call('HGET', R, head))
if not second or second.state ~= 'queued' or second.wake == '' then return 0 end
for token in string.gmatch(call('HGET', R, '@') or '', '%S+') do
  local r = parse(token, call('HGET', R, token))
  if r and r.state == 'offered' and r.fence == ARGV[6] and call('LPOS', base .. r.wake, token) then
    call('LPUSH', base .. second.wake, head .. ' ' .. ARGV[6])
    call('PEXPIRE', base .. second.wake, LIVE)
    return 1
  end
end
return 0
