-- The release of the only holder where nobody waits. Most calls of end.lua end here or in the part that
-- follows, so these are written out, without records as tables; end.lua does what they leave aside.
-- Put after _common.lua.
local seen = call('HMGET', R, ARGV[8], '@')
local fence, exp, limit, ticket, since, owner = string.match(seen[2] == ARGV[8] and seen[1] or '',
  '^held|(%d+)|(%d+)|%d+|%d+|(%d+)|(%d+)|(%d+)|0|%x*|(.*)$')
local graves = fence and call('ZCARD', P)
local plain = fence and (ARGV[9] == fence or ARGV[9] == '') and NOW <= tonumber(exp)
  and ARGV[6] == 'released' and ARGV[7] == '0' and ARGV[10] == '' and graves < 2 * TOMBS - 1
local count = plain and call('ZCARD', Q)
local held = plain and math.max(NOW - since, 0)
if count == 0 then
  local ttl = call('PTTL', R)
  call('HDEL', R, '@')  -- a first write that passes when memory is full
  call('ZADD', P, NOW + GRACE, ARGV[8])
  call('HSET', R, ARGV[8], 'ended|released|' .. fence .. '|' .. ticket .. '|' .. held)
  if ttl < GRACE or ttl > 3 * GRACE then
    local last = call('ZREVRANGEBYSCORE', P, '+inf', '-inf', 'WITHSCORES', 'LIMIT', '0', '1')[2]
    ttl = math.max(last % RESENT - NOW, GRACE)  -- a tomb that must last may last longer than this one
    call('PEXPIRE', R, ttl)
    graves = 0
  end
  if graves == 0 then call('PEXPIRE', P, ttl) end  -- else it ends with R, as ever
  call('ZREM', INDEX, NAME)
  event(2, 'released', { fence = fence, owner = owner }, 'held', held, 'note', ARGV[12])
  return reply('ended', 'released', held, fence)
end
