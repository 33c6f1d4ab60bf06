-- Release, abandon or clear: end what this token has, and hand over.
-- PARTS    _common _freed _stamp _keep _hand _read _release _tombs _write _ends _turns _books
-- ARGV     6 reason  7 resent (1: a request of this token may still be under way; 2: the same, if the token is known)
--          8 token  9 fence or ''
--          10 job to remember as finished or ''  11 for how long ms  12 note (who cleared it, and why)
-- RETURNS  ended reason held-for fence, and the fence of an offer made if others wait behind it
numbers(11, 11)
if job ~= '' then call('ZCARD', L) end  -- fails here, if ever
if r or reason == 'abandoned' then call('ZREM', P, '') end  -- a first write that passes when memory is full
r = sweep(token, r, list)
if r and r.state == 'ended' and r.reason ~= 'lapsed' then
  reason = r.reason  -- swept just now
elseif r and r.state ~= 'ended' then
  finish(r, reason, resent)
  if r.state == 'queued' then event(1, 'timed_out', r) else note_end() end
else
  r = r or { token = token, fence = string.match(ARGV[9], '^%d+$') or '0', held = 0 }
  if ARGV[7] == '1' or reason == 'abandoned' then
    bury(r, reason, resent)
    touched = true
  else
    reason = #holders > 0 and 'taken' or 'never_held'
  end
end
settle(token)
close_books()
-- Somebody else is next should the waiter that was just woken be dead: see nudge.lua.
return ended(reason, r) .. (offered and waiting > 0 and '\n' .. offered or '')
