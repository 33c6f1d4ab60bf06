-- Count the leases of one account of the HTTP API: count one more, prolong it, or take it out.
-- PARTS    _common
-- ARGV     6 account  7 most, 0 takes it out  8 ms for which it counts  9 member
-- RETURNS  how many there are, or -1 where there were that many without this one
local account, most, life, member = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local A = string.gsub(STAMP, 'stamp$', 'A:') .. account
call('ZREMRANGEBYSCORE', A, '-inf', '(' .. NOW)
if most == 0 then
  call('ZREM', A, member)
  return call('ZCARD', A)
end
local count, ends = call('ZCARD', A), tonumber(call('ZSCORE', A, member) or 0)
if ends == 0 and count >= most then return -1 end
call('ZADD', A, math.max(ends, NOW + life), member)
call('PEXPIRE', A, math.max(call('PTTL', A), life + GRACE))
return count + (ends == 0 and 1 or 0)
