-- Acquire and poll in one: ask for the lock with a token of one's own. Safe to run any number of times.
-- PARTS    _common _stamp _grant _ends _turns
-- ARGV     6 token  7 lease ms  8 limit  9 wait (1 queue up, 0 one try)  10 claim ms  11 min hold ms
--          12 wake list id  13 ticket of an earlier answer or 0  14 fence of a silent offer or 0
--          15 max waiters  16 longest wait ms  17 job that must not run again or ''  18 owner
-- RETURNS  granted fence left stale-name... | ended reason fence | queued ticket ahead HELD
--          busy HELD | full HELD, with HELD = left fence since owner of the earliest holder
local function answer(word, ...)
  local first = holders[1] or { exp = NOW - 1, fence = 0, since = 0, owner = '' }
  for _, h in ipairs(holders) do if h.exp < first.exp then first = h end end
  close_books()
  local reply = { word, ... }
  for _, v in ipairs({ first.exp - NOW, first.fence, first.since, first.owner }) do reply[#reply + 1] = v end
  return reply
end

-- A dead waiter at the head should not cost a whole claim: the head of the queue may name an offer,
-- at least 20 ms old and with its wake message unread, that then ends as if it had lapsed.
local function standby()
  if silent == 0 or call('ZRANGE', Q, 0, 0)[1] ~= token then return end
  for _, h in ipairs(holders) do
    if h.fence == silent and h.state == 'offered' and NOW - h.since >= 20 and call('LPOS', wake_list(h), h.token) then
      return finish(h, 'lapsed')
    end
  end
end

local mine = get(token)
if mine then call('ZREM', P, '') end  -- a first write that passes when memory is full
local was_queued = mine and mine.state == 'queued'
mine = sweep(token, mine)
local gone = mine and mine.state == 'ended' and mine.reason ~= 'lapsed' and mine
if not mine and job ~= '' and call('ZSCORE', L, job) then gone = { reason = 'finished', fence = 0 } end
if gone then
  settle(token)
  close_books()
  return { 'ended', gone.reason, gone.fence }
end

known = mine and mine.ticket or 0
if known == 0 and ticket > 0 then
  local newest = math.max(US, tonumber(call('GET', STAMP) or 0))
  if ticket >= US - longest * 1000 and ticket <= newest then known = ticket end
end

local function enqueue()
  waiting, mine = true, record('queued', 0, NOW + LIVE)
  call('ZREM', P, token)  -- no tomb any more
  call('ZADD', Q, digits(known), token)
  call('ZADD', V, NOW + LIVE, token)
  put(mine)
end

if wait == 1 and known > 0 and not (mine and (mine.state == 'held' or mine.state == 'offered')) then enqueue() end
if was_queued then standby() end
settle(token)
if mine then mine = get(token) end
local fence = mine and mine.state == 'offered' and mine.fence or not mine and not waiting and fits(limit) and stamp()
if fence then
  for i, h in ipairs(holders) do if h.token == token then table.remove(holders, i) break end end
  mine = grant(fence)
  holders[#holders + 1] = mine
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
  return granted(mine)
elseif mine and mine.state == 'queued' then
  return answer('queued', known, call('ZRANK', Q, token))
end
event(1, 'refused', { owner = owner }, 'reason', 'busy')
return answer('busy')
