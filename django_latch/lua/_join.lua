-- A newcomer joins the queue while one other holds, under a limit of 1. Put after _free.lua and _keep.lua.
local by = new and seen[2] and wait == '1' and call('HGET', R, seen[2])  -- nothing, where several hold
local state, fence, exp, its_lease, its_claim, since, who = string.match(by or '',
  '^(%l+)|(%d+)|(%d+)|(%d+)|(%d+)|1|%d+|(%d+)|%d+|%x*|(.*)$')
local span = state == 'offered' and its_claim or its_lease
if state and state ~= 'queued' and NOW <= tonumber(exp) and exp - NOW <= tonumber(span) then
  local count = call('ZCARD', Q)
  if count < tonumber(most) and (count == 0 or call('ZCOUNT', V, NOW, NOW + LIVE) == count) then  -- all are alive
    call('ZCARD', INDEX)  -- of a wrong type it fails here, before anything is written
    if LEVEL > 0 then call('XLEN', EVENTS) end
    local ticket, need = stamp(), math.max(exp - NOW, LIVE)
    call('ZREM', P, token)
    call('ZADD', V, NOW + LIVE, token)
    call('ZADD', Q, ticket, token)
    call('HSET', R, token, 'queued|0|' .. NOW + LIVE .. '|' .. lease .. '|' .. claim .. '|' .. limit .. '|' .. ticket ..
      '|' .. MS .. '|0|' .. wake .. '|' .. owner)
    event(1, 'queued', { owner = owner })
    call('ZADD', INDEX, NOW + need, NAME)
    keep_index(need)
    keep(need, Q, V)
    local ahead = call('ZRANK', Q, token)  -- not all, where the stamp was lost and the clock set back
    return reply('queued', ticket, ahead, exp - NOW, fence, since, who)
  end
end
