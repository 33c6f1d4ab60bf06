-- Release, abandon or clear: end what this token has, and hand over.
-- PARTS    _ends _turns
-- ARGV     6 token  7 reason  8 fence or ''  9 resent (1: a request of this token may still be under way)
--          10 job to remember as finished or ''  11 for how long ms  12 note (who cleared it, and why)
-- RETURNS  ended reason held-for fence
local token, reason, fence, resent, job, note = ARGV[6], ARGV[7], ARGV[8], ARGV[9] == '1', ARGV[10], ARGV[12]
local life = whole(11, 0)
local r = get(token)
if r and fence ~= '' and fence ~= digits(r.fence) then return { 'ended', 'superseded', 0, r.fence } end
if r and r.state == 'ended' and r.reason ~= 'lapsed' then return { 'ended', r.reason, r.held, r.fence } end
if r or reason == 'abandoned' then call('ZREM', P, '') end  -- a first write that passes when memory is full
local was = r
if r then
  sweep(token)
  r = get(token)
  if (r.state == 'held' or r.state == 'offered') and not call('ZSCORE', H, token) then
    finish(r, 'missing')
    r = get(token)
  end
end
if r and r.state == 'ended' and r.reason ~= 'lapsed' then
  reason = r.reason  -- swept just now
elseif r and r.state ~= 'ended' then
  finish(r, reason, resent)
  if r.state == 'queued' then
    event(1, 'timed_out', r)
  else
    local cleared = reason == 'revoked'
    event(cleared and 1 or 2, cleared and 'cleared' or reason, r, 'held', digits(r.held), 'note', note)
  end
  if r.state == 'held' and job ~= '' then
    call('ZREMRANGEBYSCORE', L, '-inf', digits(NOW))
    call('ZADD', L, digits(NOW + life), job)
    call('PEXPIRE', L, math.max(call('PTTL', L), life))
  end
else
  r = r or { token = token, fence = 0, held = 0 }
  if resent or reason == 'abandoned' then
    if not was then sweep(token) end
    bury(r, reason, resent)
  else
    sweep(token)
    reason = #holders > 0 and 'taken' or 'never_held'
  end
end
settle(token)
close_books()
return { 'ended', reason, r.held, r.fence }
