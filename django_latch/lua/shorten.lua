-- Lower the expiry of a hold, on proof that its process is dead or about to be.
-- PARTS    _common _read _write
-- ARGV     6 ms from now  7 token  8 fence or ''
-- RETURNS  ok fence left now waiters | ended reason fence
local ms, token, fence = numbers(6, 6)[6], ARGV[7], ARGV[8]
local r, list = look(token)
if not r then return reply('ended', 'missing', 0) end
if r.state == 'ended' then return reply('ended', r.reason, format('%.0f', r.fence)) end
if r.state ~= 'held' or not listed(token, list) then return reply('ended', 'missing', format('%.0f', r.fence)) end
if fence ~= '' and fence ~= format('%.0f', r.fence) then return reply('ended', 'superseded', format('%.0f', r.fence)) end
if NOW > r.exp then return reply('ended', 'expired', format('%.0f', r.fence)) end
call('ZREM', P, '')  -- a first write that passes when memory is full
r.exp = math.min(r.exp, NOW + ms)
put(r)
keep(R, GRACE)
if list == token then redis.pcall('ZADD', INDEX, r.exp, NAME) end
return reply('ok', format('%.0f', r.fence), r.exp - NOW, NOW, call('ZCARD', Q))
