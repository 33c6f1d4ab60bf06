-- Publish what was computed: all shapes at once, free the lock of the election, and wake whoever waits.
-- Safe to run any number of times. Without a token, by a caller with a permit only, the fence alone decides.
-- PARTS    _common _value _stamp _keep _read _tombs _write _ends _turns _news _books
-- ARGV     6 fresh ms  7 keep ms  8 took ms  9 not fresh after (ms of the server's clock), or 0
--          10 token or ''  11 fence, then field and value of each shape
-- RETURNS  published '' fence | refused reason fence
local fresh, keep_ms, took, deadline = numbers(6, 9)
local token, fence = ARGV[10], string.match(ARGV[11], '^%d+$') or error('LATCHARGS 11')
local last = string.match(call('HGET', S, 'm') or '', '^(%d+)|') or '0'
if last == fence then return reply('published', '', fence) end  -- another copy of this call was here
local r, list = look(token)
r = sweep(token, r, list)
local why = tonumber(last) > tonumber(fence) and 'superseded' or nil
if not why and token ~= '' and not elected(r, fence) then
  why = r and (r.state == 'ended' and r.reason or 'superseded') or 'missing'
end
if not why then
  local ends = NOW + fresh
  if deadline ~= '0' then ends = math.min(ends, deadline) end
  local facts = fence .. '|' .. MS .. '|' .. ends .. '|' .. NOW + keep_ms .. '|' .. took
  call('HSET', S, 'm', facts)  -- refused, with all that follows, when memory is full
  call('DEL', S)
  call('HSET', S, 'm', facts, unpack(ARGV, 12))
  call('PEXPIRE', S, keep_ms)
  list_until(tonumber(keep_ms))
end
if elected(r, fence) then dismiss(r, 'released') end
if not why or r then tell_all() end
settle(token)
close_books()
if why then return reply('refused', why, last) end
return reply('published', '', fence)
