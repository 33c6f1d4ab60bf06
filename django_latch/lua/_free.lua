-- What is asked for, and the grant where nobody holds or waits and the token was never seen. Most requests end
-- here or in the two parts that follow, so those are written out, without records as tables; request.lua
-- does what they leave aside. Put after _stamp.lua.
local lease, limit, wait, claim, hold, most, longest = string.match(table.concat(ARGV, ' ', 6, 12),
  '^([1-9]%d*) ([1-9]%d*) ([01]) ([1-9]%d*) (%d+) (%d+) (%d+)$')
if not lease or #lease > 13 or #claim > 13 or #hold > 13 then error('LATCHARGS 6') end
local owner, wake, job, token = ARGV[13], ARGV[14], ARGV[15], ARGV[16]
local seen = call('HMGET', R, token, '@')
local plain = job == '' and hold == '0'
local new = plain and not seen[1] and ARGV[17] == '0'
if new and not seen[2] and call('EXISTS', Q) == 0 then
  local fence, exp, ttl = stamp(), NOW + lease, lease + GRACE
  call('ZADD', INDEX, exp, NAME)  -- before the grant, which must not be if this fails
  if call('PTTL', INDEX) < lease + WEEK then call('PEXPIRE', INDEX, lease + 2 * WEEK) end
  event(2, 'acquired', { fence = fence, owner = owner }, 'waited', 0)
  call('HSET', R, '@', token, token, 'held|' .. fence .. '|' .. exp .. '|' .. lease .. '|' .. claim .. '|' ..
    limit .. '|0|' .. MS .. '|0|' .. wake .. '|' .. owner)
  if call('PTTL', R) < ttl then
    ttl = spare(ttl)
    call('PEXPIRE', R, ttl)
    call('PEXPIRE', P, ttl)
  end
  return reply('granted', fence, lease, unpack(call('ZRANGEBYSCORE', INDEX, '-inf', '(' .. MS, 'LIMIT', '0', '3')))
end
