-- Forget the value and the failures of a snapshot. Whatever is being computed now cannot be published: its
-- election ends, and only a later fence counts.
-- PARTS    _common _value _stamp _keep _read _tombs _write _ends _turns _news _books
-- ARGV     6 longest compute ms: for how long an older fence is remembered
-- RETURNS  invalidated '' fence
local longest = numbers(6, 6)
call('DEL', S)  -- a first write that passes when memory is full
sweep('', false, call('HGET', R, '@') or '')
for _, h in ipairs({ unpack(holders) }) do dismiss(h, 'revoked') end
local fence = stamp()
call('HSET', S, 'm', fence .. '|' .. MS .. '|0|0|0')
call('PEXPIRE', S, longest + GRACE)
call('ZREM', LIST, NAME)
tell_all()
settle('')
close_books()
return reply('invalidated', '', fence)
