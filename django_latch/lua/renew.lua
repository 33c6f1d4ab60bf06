-- Renew a hold: the expiry is raised, never lowered. A hold that has expired stays ended.
-- PARTS    _common _keep _read _holds _write
-- ARGV     6 lease ms  7 owner, '' leaves it  8 token  9 fence or ''
-- RETURNS  ok fence left now waiters | ended reason fence
local lease, owner, token, fence = numbers(6, 6), ARGV[7], ARGV[8], ARGV[9]
local r, list = look(token)
call('ZREM', P, '')  -- a first write that passes when memory is full
local refused, why = refusal(r, list, token, fence)
if refused then
  -- Told in an earlier answer that it holds, and no trace is left: this is where the loss is seen.
  if why == 'missing' and fence ~= '' then event(1, 'lost', { fence = fence }, 'reason', why) end
  return refused
end
r.lease = math.max(r.lease, lease)
r.exp = math.max(math.min(r.exp, NOW + r.lease), NOW + lease)  -- min: the server's clock was set back
if owner ~= '' then r.owner = owner end
put(r)
keep(need)
redis.pcall('ZADD', INDEX, 'GT', r.exp, NAME)  -- a broken list must not end a lease
keep_index(need)
return reply('ok', r.fence, r.exp - NOW, NOW, call('ZCARD', Q))
