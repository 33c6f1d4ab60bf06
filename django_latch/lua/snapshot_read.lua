-- Read a snapshot and, where it is not fresh, elect one caller to compute it: the holder of its lock. In one
-- step, so nobody is elected who is not needed. Safe to run any number of times.
-- PARTS    _common _value _fresh _stamp _keep _read _tombs _write _ends _turns _books
-- ARGV     6 lease ms  7 field of the value  8 may be elected (1), or only looks (0)
--          9 owner  10 token  11 fence of a value that the caller cannot read, or 0
-- RETURNS  state fence age left took role holder holder-left since failures retry-in error, and then the value,
--          with state hit, stale or miss, and role elected, takeover (from one whose lease had passed), busy
--          (another computes), failed (not computed again so soon), ended (the token is), or '' (nobody computes)
local function newest()
  local entry = call('XREVRANGE', N, '+', '-', 'COUNT', 1)[1]
  return entry and entry[1] or '0-0'
end
if ARGV[8] == '0' then
  for other in string.gmatch(call('HGET', R, '@') or '', '%S+') do
    local h = get(other)
    if h and h.state == 'held' and NOW <= h.exp then return answer('busy', h.fence, h.exp - NOW, newest()) end
  end
  return answer(failures and NOW < tonumber(not_before) and 'failed' or '', '0', 0, newest())
end

local lease = numbers(6, 6)
local mine, list = look(token)
mine = sweep(token, mine, list)
settle(token)
local role = 'elected'
if mine and mine.state == 'ended' then
  role = 'ended'
elseif not mine and #holders > 0 then
  role = 'busy'
elseif not mine and failures and NOW < tonumber(not_before) then
  role = 'failed'
elseif not mine then
  if list ~= '' then role = 'takeover' end
  mine = { token = token, state = 'held', fence = stamp(), exp = NOW + lease, lease = lease, claim = '1', limit = '1',
    ticket = '0', since = MS, hold = '0', wake = '', owner = ARGV[9] }
  event(2, 'acquired', mine, 'waited', 0)
  put(mine)
  holders[#holders + 1], touched = mine, true
end
close_books()
local h = holders[1]
if role == 'elected' or role == 'takeover' then return answer(role, mine.fence, mine.exp - NOW, '0-0') end
return answer(role, h and h.fence or '0', h and h.exp - NOW or 0, newest())
