-- A compute ended without a value: free the lock of the election, wake whoever waits and, if it failed, remember
-- that beside the last good value: for a while, twice as long each time, nobody is elected.
-- PARTS    _common _value _stamp _keep _read _tombs _write _ends _turns _news _books
-- ARGV     6 first pause ms  7 longest pause ms  8 error, or '' (it was given up)  9 token or ''  10 fence
-- RETURNS  freed '' retry-in | refused reason 0
local first, most = numbers(6, 7)
local problem, token, fence = ARGV[8], ARGV[9], string.match(ARGV[10], '^%d+$') or error('LATCHARGS 10')
call('ZREM', P, '')  -- a first write that passes when memory is full
local at = call('HMGET', S, 'm', 'e')
local r, list = look(token)
r = sweep(token, r, list)
local mine = elected(r, fence)
local newer = tonumber(string.match(at[1] or '', '^(%d+)|') or 0) > tonumber(fence)
local pause = 0
if problem ~= '' and not newer and (mine or token == '') then
  local failures = tonumber(string.match(at[2] or '', '^(%d+)|') or 0) + 1
  pause = math.min(first * 2 ^ math.min(failures - 1, 30), tonumber(most))
  call('HSET', S, 'e', failures .. '|' .. NOW + pause .. '|' .. problem)
  local life = math.max(call('PTTL', S), pause + most)
  call('PEXPIRE', S, life)
  list_until(life)
end
if mine then dismiss(r, problem == '' and 'abandoned' or 'released') end
if not mine and problem == '' and token ~= '' and not r then
  -- The election may still be under way: it must elect nobody.
  bury({ token = token, fence = fence, ticket = '0', held = 0 }, 'abandoned', true)
  touched = true
end
if mine or pause > 0 then tell_all() end
settle(token)
close_books()
if mine or token == '' then return reply('freed', '', pause) end
return reply('refused', r and r.reason or 'missing', 0)
