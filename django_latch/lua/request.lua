-- Acquire and poll in one: ask for the lock with a token of one's own. Safe to run any number of times.
-- PARTS    _common _stamp _free _keep _take _join _write _grant _read _tombs _ends _turns _queue _books
-- ARGV     6 lease ms  7 limit  8 wait (1 queue up, 0 one try)  9 claim ms  10 min hold ms
--          11 max waiters  12 longest wait ms  13 owner  14 wake list id
--          15 job that must not run again or ''  16 token  17 ticket of an earlier answer or 0
--          18 fence of a silent offer or 0
-- RETURNS  granted fence left stale-name... | carrying fence left payload | ended reason fence | queued ticket ahead HELD
--          busy HELD | full HELD, with HELD = left fence since owner of the earliest holder
local function answer(word, ...)
  local first = holders[1] or { exp = NOW - 1, fence = '0', since = '0', owner = '' }
  for _, h in ipairs(holders) do if h.exp < first.exp then first = h end end
  close_books()
  return reply(word, ...) .. '\n' .. reply(first.exp - NOW, first.fence, first.since, first.owner)
end

local ticket = tonumber(string.match(ARGV[17], '^%d+$') or error('LATCHARGS 17'))
local mine = parse(token, seen[1])
-- A first write that passes when memory is full; a tomb past its time goes for good.
if seen[1] then call('ZREM', P, mine and '' or token) end
if seen[1] and not mine then call('HDEL', R, token) end
local finished = job ~= '' and tonumber(call('ZSCORE', L, job) or 0) > NOW
local was_queued = mine and mine.state == 'queued'
mine = sweep(token, mine, seen[2] or '')
if finished and mine and (mine.state == 'queued' or mine.state == 'offered') then
  finish(mine, 'finished')  -- another copy of its message did the work while this one waited
  mine = get(token)
end
local gone = mine and mine.state == 'ended' and mine.reason ~= 'lapsed' and mine
if finished and not gone and not (mine and mine.state == 'held') then gone = { reason = 'finished', fence = '0' } end
if gone then
  settle(token)
  close_books()
  return reply('ended', gone.reason, gone.fence)
end

known = mine and mine.ticket or '0'
if known == '0' and ticket > 0 then
  local newest = math.max(US, tonumber(call('GET', STAMP) or 0))
  if ticket >= US - longest * 1000 and ticket <= newest then known = ARGV[17] end
end

local has = mine and (mine.state == 'held' or mine.state == 'offered')
if wait == '1' and known ~= '0' and not has then mine = enqueue(mine) end
if was_queued then standby() end
settle(token)
if mine and mine.state == 'queued' then
  for _, h in ipairs(holders) do if h.token == token then mine = h end end  -- its turn has come
end
local fence = mine and mine.state == 'offered' and mine.fence
if not mine and waiting == 0 and fits(tonumber(limit)) then fence = stamp() end
if fence then
  for i, h in ipairs(holders) do if h.token == token then table.remove(holders, i) break end end
  mine = grant(fence)
  holders[#holders + 1], touched = mine, true
elseif not mine and wait == '1' then
  if waiting >= tonumber(most) then
    event(1, 'refused', { owner = owner }, 'reason', 'full')
    return answer('full')
  end
  known = stamp()
  mine = enqueue(false)
  event(1, 'queued', { owner = owner })
end
if mine and mine.state == 'held' then
  close_books()
  local carried = job ~= '' and call('HMGET', J, 'job', 'payload', 'ran', 'given') or {}
  if carried[1] == job and job ~= '' then
    -- Its run begins: a call from now on asks for another one. A copy of this request is told the same.
    call('ZREM', DUE, NAME)
    call('HSET', J, 'job', '', 'ran', job, 'given', carried[2])
    call('PEXPIRE', J, GRACE)
    carried = { '', '', job, carried[2] }
  end
  if job == '' or carried[3] ~= job then return granted(mine) end
  return reply('carrying', mine.fence, mine.exp - NOW, carried[4])
end
local ahead = mine and mine.state == 'queued' and call('ZRANK', Q, token)
if ahead then return answer('queued', known, ahead) end
event(1, 'refused', { owner = owner }, 'reason', 'busy')
return answer('busy')
