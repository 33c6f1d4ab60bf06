-- Renew a hold: the expiry is raised, never lowered. A hold that has expired stays ended.
-- PARTS    _common _read _write
-- ARGV     6 lease ms  7 owner, '' leaves it  8 token  9 fence or ''
-- RETURNS  ok fence left now waiters | ended reason fence
local lease, owner, token, fence = numbers(6, 6)[6], ARGV[7], ARGV[8], ARGV[9]
local r, list = look(token)
call('ZREM', P, '')  -- a first write that passes when memory is full
local function ended(reason)
  -- Told in an earlier answer that it holds, and no trace is left: this is where the loss is seen.
  if reason == 'missing' and fence ~= '' then event(1, 'lost', { fence = tonumber(fence) }, 'reason', reason) end
  return reply('ended', reason, format('%.0f', r and r.fence or 0))
end
if not r then return ended('missing') end
if r.state == 'ended' then return ended(r.reason == 'lapsed' and 'missing' or r.reason) end
if r.state ~= 'held' or not listed(token, list) then return ended('missing') end
if NOW > r.exp then return ended('expired') end
if fence ~= '' and fence ~= format('%.0f', r.fence) then return ended('superseded') end
r.lease = math.max(r.lease, lease)
r.exp = math.max(math.min(r.exp, NOW + r.lease), NOW + lease)  -- min: the server's clock was set back
if owner ~= '' then r.owner = owner end
put(r)
keep(R, GRACE)
redis.pcall('ZADD', INDEX, 'GT', r.exp, NAME)  -- a broken list must not end a lease
keep(INDEX, WEEK)
return reply('ok', format('%.0f', r.fence), r.exp - NOW, NOW, call('ZCARD', Q))
