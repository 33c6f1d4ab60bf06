-- Lower the expiry of a hold, on proof that its process is dead or about to be.
-- PARTS    _common _read _holds _write
-- ARGV     6 ms from now  7 token  8 fence or ''
-- RETURNS  ok fence left now waiters | ended reason fence
local ms, token, fence = numbers(6, 6), ARGV[7], ARGV[8]
local r, list = look(token)
local refused = refusal(r, list, token, fence)
if refused then return refused end
call('ZREM', P, '')  -- a first write that passes when memory is full
r.exp = math.min(r.exp, NOW + ms)
put(r)
if list == token then redis.pcall('ZADD', INDEX, 'XX', r.exp, NAME) end
return reply('ok', r.fence, r.exp - NOW, NOW, call('ZCARD', Q))
