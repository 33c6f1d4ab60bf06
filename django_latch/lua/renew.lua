-- Renew a hold: the expiry is raised, never lowered. A hold that has expired stays ended.
-- PARTS    _common
-- ARGV     6 token  7 fence or ''  8 lease ms  9 owner, '' leaves it
-- RETURNS  ok fence left now waiters | ended reason fence
local token, fence, lease = ARGV[6], ARGV[7], whole(8, 1)
local r = get(token)
call('ZREM', P, '')  -- a first write that passes when memory is full
local function ended(reason)
  -- Told in an earlier answer that it holds, and no trace is left: this is where the loss is seen.
  if reason == 'missing' and fence ~= '' then event(1, 'lost', { fence = fence }, 'reason', reason) end
  return { 'ended', reason, r and r.fence or 0 }
end
if not r then return ended('missing') end
if r.state == 'ended' then return ended(r.reason == 'lapsed' and 'missing' or r.reason) end
if r.state ~= 'held' or not call('ZSCORE', H, token) then return ended('missing') end
if NOW > r.exp then return ended('expired') end
if fence ~= '' and fence ~= digits(r.fence) then return ended('superseded') end
r.lease = math.max(r.lease, lease)
r.exp = math.max(math.min(r.exp, NOW + r.lease), NOW + lease)  -- min: the server's clock was set back
if ARGV[9] ~= '' then r.owner = ARGV[9] end
put(r)
call('ZADD', H, r.exp, token)
call('ZADD', INDEX, 'GT', r.exp, NAME)
keep_index()
keep(false)
return { 'ok', r.fence, r.exp - NOW, NOW, call('ZCARD', Q) }
