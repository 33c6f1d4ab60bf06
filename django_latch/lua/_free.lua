-- A request for a lock that nobody holds or waits for, with a token never seen: most requests end here,
-- so all of it is written out. request.lua does what is left aside. Put after _stamp.lua.
local seen = call('HMGET', R, ARGV[16], '@')
if not (seen[1] or seen[2]) and ARGV[15] == '' and ARGV[17] == '0' and call('EXISTS', Q) == 0 then
  local lease, limit, claim = string.match(table.concat(ARGV, ' ', 6, 12),
    '^([1-9]%d*) ([1-9]%d*) [01] ([1-9]%d*) 0 %d+ %d+$')
  if lease and #lease <= 13 and #claim <= 13 then
    local fence, exp, ttl = stamp(), NOW + lease, lease + GRACE
    call('ZADD', INDEX, exp, NAME)  -- before the grant, which must not be if this fails
    if call('PTTL', INDEX) < lease + WEEK then call('PEXPIRE', INDEX, lease + 2 * WEEK) end
    event(2, 'acquired', { fence = fence, owner = ARGV[13] }, 'waited', 0)
    call('HSET', R, '@', ARGV[16], ARGV[16], 'held|' .. fence .. '|' .. exp .. '|' .. lease .. '|' .. claim .. '|' ..
      limit .. '|0|' .. MS .. '|0|' .. ARGV[14] .. '|' .. ARGV[13])
    local had = call('PTTL', R)
    if had < ttl then call('PEXPIRE', R, ttl) end
    call('PEXPIRE', P, math.max(had, ttl))
    local stale = call('ZRANGEBYSCORE', INDEX, '-inf', '(' .. MS, 'LIMIT', '0', '3')
    return reply('granted', fence, lease, unpack(stale))
  end
end
