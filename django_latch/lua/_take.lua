-- A waiter takes what it was offered while nobody else holds, under a limit of 1.
-- Put after _free.lua and _keep.lua.
local fence, exp, span, ticket = string.match(plain and seen[2] == token and seen[1] or '',
  '^offered|(%d+)|(%d+)|%d+|(%d+)|1|(%d+)|')
if fence and NOW <= tonumber(exp) and exp - NOW <= tonumber(span) then
  local count = call('ZCARD', Q)
  if count == 0 or call('ZCOUNT', V, NOW, NOW + LIVE) == count then  -- all who wait are alive
    local need = math.max(lease, count > 0 and LIVE or 0)
    call('ZREM', P, '')  -- a first write that passes when memory is full
    call('ZADD', INDEX, NOW + need, NAME)
    keep_index(need)
    event(2, 'acquired', { fence = fence, owner = owner }, 'waited', math.max(NOW - math.floor(ticket / 1000), 0))
    call('HSET', R, token, 'held|' .. fence .. '|' .. NOW + lease .. '|' .. lease .. '|' .. claim .. '|' .. limit ..
      '|' .. ticket .. '|' .. MS .. '|0|' .. wake .. '|' .. owner)
    keep(need)
    return reply('granted', fence, lease)
  end
end
