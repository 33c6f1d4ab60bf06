-- The only holder releases and the first waiter is offered the lock, under limits of 1.
-- Put after _freed.lua, _stamp.lua and _keep.lua.
local head
if count == 1 and limit == '1' then  -- V lists who is in Q: one command for who it is, and whether alive
  local at = call('ZRANGE', V, '0', '1', 'WITHSCORES')
  head = #at == 2 and NOW <= tonumber(at[2]) and at[2] - NOW <= LIVE and at[1]
elseif count and limit == '1' then
  head = call('ZCOUNT', V, NOW, NOW + LIVE) == count and call('ZRANGE', Q, '0', '0')[1]
end
local lease, claim, place, hold, wake, who = string.match(head and call('HGET', R, head) or '',
  '^queued|0|%d+|(%d+)|(%d+)|1|(%d+)|%d+|(%d+)|(%x+)|(.*)$')
if lease then
  call('ZCARD', INDEX)  -- of a wrong type it fails here, before anything is written
  if LEVEL > 1 then call('XLEN', EVENTS) end
  local list, need = string.gsub(STAMP, 'stamp$', 'W:') .. wake, math.max(claim, count > 1 and LIVE or 0)
  if count == 1 then
    call('DEL', Q, V)  -- a first write that passes when memory is full
  else
    call('ZREM', Q, head)
    call('ZREM', V, head)
  end
  call('ZADD', P, NOW + GRACE, ARGV[8])
  local offer = stamp()
  call('HSET', R, '@', head, ARGV[8], 'ended|released|' .. fence .. '|' .. ticket .. '|' .. held,
    head, 'offered|' .. offer .. '|' .. NOW + claim .. '|' .. lease .. '|' .. claim .. '|1|' .. place .. '|' .. MS ..
    '|' .. hold .. '|' .. wake .. '|' .. who)
  event(2, 'released', { fence = fence, owner = owner }, 'held', held, 'note', ARGV[12])
  if call('LPUSH', list, head) > 1000 then call('LTRIM', list, 0, 999) end
  call('PEXPIRE', list, claim + LIVE)
  call('ZADD', INDEX, NOW + need, NAME)
  keep_index(need)
  keep(need, graves == 0 and P)
  if count > 1 then return reply('ended', 'released', held, fence, offer) end  -- see nudge.lua
  return reply('ended', 'released', held, fence)
end
