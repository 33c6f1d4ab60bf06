-- Acquire and poll in one: ask for the lock with a token of one's own. Safe to run any number of times.
-- PARTS    _ends _turns
-- ARGV     6 token  7 lease ms  8 limit  9 wait (1 queue up, 0 one try)  10 claim ms  11 min hold ms
--          12 wake list id  13 ticket of an earlier answer or 0  14 fence of a silent offer or 0
--          15 max waiters  16 longest wait ms  17 job that must not run again or ''  18 owner
-- RETURNS  granted fence left stale-name... | ended reason fence | queued ticket ahead HELD
--          busy HELD | full HELD, with HELD = left fence since owner of the earliest holder
local token, wake, job, owner = ARGV[6], ARGV[12], ARGV[17], ARGV[18]
local lease, limit, wait, claim, hold = whole(7, 1), whole(8, 1), whole(9, 0), whole(10, 1), whole(11, 0)
local ticket, silent, most, longest = whole(13, 0), whole(14, 0), whole(15, 0), whole(16, 0)

local function answer(word, ...)
  local first = holders[1] or { exp = NOW - 1, fence = 0, since = 0, owner = '' }
  for _, h in ipairs(holders) do if h.exp < first.exp then first = h end end
  close_books()
  local reply = { word, ... }
  for _, v in ipairs({ first.exp - NOW, first.fence, first.since, first.owner }) do reply[#reply + 1] = v end
  return reply
end

local mine = get(token)
if mine then call('ZREM', P, '') end  -- a first write that passes when memory is full
local was_queued = mine and mine.state == 'queued'
sweep(token)
mine = mine and get(token)
if mine and (mine.state == 'held' or mine.state == 'offered') and not call('ZSCORE', H, token) then
  finish(mine, 'missing')  -- H was deleted: that hold counts no more
  mine = get(token)
end
local gone = mine and mine.state == 'ended' and mine.reason ~= 'lapsed' and mine
if not mine and job ~= '' and call('ZSCORE', L, job) then gone = { reason = 'finished', fence = 0 } end
if gone then
  settle(token)
  close_books()
  return { 'ended', gone.reason, gone.fence }
end

local known = mine and mine.ticket or 0  -- the ticket that keeps the caller's place
local newest = math.max(US, tonumber(call('GET', STAMP) or 0))
if known == 0 and ticket >= US - longest * 1000 and ticket <= newest then known = ticket end

local function record(state, fence, exp)
  return { token = token, state = state, fence = fence, exp = exp, lease = lease, claim = claim, limit = limit,
    ticket = known, since = NOW, hold = state == 'held' and hold > 0 and NOW + hold or 0, wake = wake, owner = owner }
end

local function enqueue()
  waiting, mine = true, record('queued', 0, NOW + LIVE)
  call('ZREM', P, token)  -- no tomb any more
  call('ZADD', Q, digits(known), token)
  call('ZADD', V, digits(NOW + LIVE), token)
  put(mine)
end

if wait == 1 and known > 0 and not (mine and (mine.state == 'held' or mine.state == 'offered')) then enqueue() end
if was_queued then standby(token, silent) end
settle(token)
if mine then mine = get(token) end
local fence = mine and mine.state == 'offered' and mine.fence or not mine and not waiting and fits(limit) and stamp()
if fence then
  for i, h in ipairs(holders) do if h.token == token then table.remove(holders, i) break end end
  mine = record('held', fence, NOW + lease)
  call('ZADD', H, digits(mine.exp), token)
  put(mine)
  holders[#holders + 1] = mine
  event(2, 'acquired', mine, 'waited', digits(known > 0 and math.max(NOW - math.floor(known / 1000), 0) or 0))
elseif not mine and wait == 1 then
  if waiting and call('ZCARD', Q) >= most or most == 0 then
    event(1, 'refused', { owner = owner }, 'reason', 'full')
    return answer('full')
  end
  known = stamp()
  enqueue()
  event(1, 'queued', { owner = owner })
end
if mine and mine.state == 'held' then
  close_books()
  local reply = { 'granted', mine.fence, mine.exp - NOW }
  local stale = call('ZRANGEBYSCORE', INDEX, '-inf', '(' .. digits(NOW), 'LIMIT', 0, 3)
  for _, name in ipairs(stale) do reply[#reply + 1] = name end
  return reply
elseif mine and mine.state == 'queued' then
  return answer('queued', known, call('ZRANK', Q, token))
end
event(1, 'refused', { owner = owner }, 'reason', 'busy')
return answer('busy')
