-- Lower the expiry of a hold, on proof that its process is dead or about to be.
-- PARTS    _common
-- ARGV     6 token  7 fence or ''  8 ms from now
-- RETURNS  ok fence left now waiters | ended reason fence
local token, fence, ms = ARGV[6], ARGV[7], whole(8, 1)
local r = get(token)
if not r then return { 'ended', 'missing', 0 } end
if r.state == 'ended' then return { 'ended', r.reason, r.fence } end
if r.state ~= 'held' or not call('ZSCORE', H, token) then return { 'ended', 'missing', r.fence } end
if fence ~= '' and fence ~= digits(r.fence) then return { 'ended', 'superseded', r.fence } end
if NOW > r.exp then return { 'ended', 'expired', r.fence } end
call('ZREM', P, '')  -- a first write that passes when memory is full
r.exp = math.min(r.exp, NOW + ms)
put(r)
call('ZADD', H, r.exp, token)
keep(false)
return { 'ok', r.fence, r.exp - NOW, NOW, call('ZCARD', Q) }
