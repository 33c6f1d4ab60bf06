-- Take several locks that are all free, or none of them. Safe to run any number of times.
-- PARTS    _common _keep _read _write _stamp
-- KEYS     11... the six keys of each further lock
-- ARGV     6 lease ms  7 limit  8 claim ms  9 owner, then name and token of each lock
-- RETURNS  granted left fence... (left of the earliest) | busy name
local lease, limit, claim = numbers(6, 8)
local count = (#KEYS - 4) / 6

-- Speak of lock i from here on.
local function use(i)
  R, Q, V, P, L, J = unpack(KEYS, 6 * i - 1, 6 * i + 4)
  NAME = ARGV[8 + 2 * i]
  return ARGV[9 + 2 * i]
end

local left, fences, known, forgotten = lease, {}, 0, {}
for i = 1, count do
  local token = use(i)
  local seen = call('HMGET', R, token, '@')
  local mine = parse(token, seen[1])
  if mine and mine.state == 'held' and seen[2] == token and NOW <= mine.exp then  -- granted to an earlier copy
    known, left = known + 1, math.min(left, mine.exp - NOW)
    fences[i] = mine.fence
  elseif mine or seen[2] or call('ZCARD', Q) > 0 then
    return reply('busy', NAME)
  end
  forgotten[i] = seen[1] and not mine
end
if known > 0 and known < count then return reply('busy', NAME) end
if known == 0 then
  -- Of a wrong type these fail here, before anything is written.
  call('ZCARD', INDEX)
  if LEVEL > 1 then call('XLEN', EVENTS) end
  for i = 1, count do
    local token = use(i)
    if forgotten[i] then call('ZREM', P, token) end  -- a tomb past its time goes for good
    local r = { token = token, state = 'held', fence = stamp(), exp = NOW + lease, lease = lease, claim = claim,
      limit = limit, ticket = '0', since = MS, hold = 0, wake = '', owner = ARGV[9] }
    put(r, '@', r.token)
    call('ZADD', INDEX, r.exp, NAME)
    keep(need)
    event(2, 'acquired', r, 'waited', 0)
    fences[i] = r.fence
  end
  keep_index(need)
end
return reply('granted', left, unpack(fences))
