-- Release, abandon or clear: end what this token has, and hand over.
-- PARTS    _common _ends _release _stamp _turns
-- ARGV     6 token  7 reason  8 fence or ''  9 resent (1: a request of this token may still be under way)
--          10 job to remember as finished or ''  11 for how long ms  12 note (who cleared it, and why)
-- RETURNS  ended reason held-for fence
r = sweep(token, r)
if r and r.state == 'ended' and r.reason ~= 'lapsed' then
  reason = r.reason  -- swept just now
elseif r and r.state ~= 'ended' then
  finish(r, reason, resent)
  if r.state == 'queued' then
    event(1, 'timed_out', r)
  else
    note_end()
  end
else
  r = r or { token = token, fence = 0, held = 0 }
  if resent or reason == 'abandoned' then
    bury(r, reason, resent)
  else
    reason = #holders > 0 and 'taken' or 'never_held'
  end
end
settle(token)
close_books()
return { 'ended', reason, r.held, r.fence }
