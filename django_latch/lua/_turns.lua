-- Who may hold, and who is next. Put after _ends.lua and _stamp.lua.

local function wake_list(r) return string.gsub(STAMP, 'stamp$', 'W:') .. r.wake end

-- End what has expired: holds for good; offers and silent waiters (never the caller) keep their ticket.
-- `mine` is what look() said of the caller, `list` whom it found holding. Returns what the caller has now.
local function sweep(me, mine, list)
  -- A key of a wrong type fails here, before anything is written.
  call('ZCARD', INDEX)
  call('ZCARD', V)
  if LEVEL > 0 then call('XLEN', EVENTS) end
  graves, waiting, listing = call('ZCARD', P), call('ZCARD', Q), list
  local ended = {}
  for token in string.gmatch(list, '%S+') do
    local r = token == me and mine or token ~= me and get(token)
    if not r or r.state == 'ended' or r.state == 'queued' then
      touched = true  -- its record was deleted: nobody can prove that hold any more
    else
      local span = tonumber(r.state == 'offered' and r.claim or r.lease)
      if r.exp - NOW > span then  -- the server's clock was set back
        r.exp, touched = NOW + span, true
        put(r)
      end
      local into = NOW <= r.exp and holders or ended
      into[#into + 1] = r
    end
  end
  for _, r in ipairs(ended) do expire(r) end
  if waiting > 0 then
    for _, token in ipairs(call('ZRANGEBYSCORE', V, '(' .. NOW + LIVE, '+inf')) do
      call('ZADD', V, NOW + LIVE, token)
    end
    for _, token in ipairs(call('ZRANGEBYSCORE', V, '-inf', '(' .. NOW)) do
      local r = token ~= me and get(token)
      if r and r.state == 'queued' then
        finish(r, 'lapsed')
      elseif token ~= me then  -- its record was lost
        waiting = waiting - call('ZREM', Q, token)
        call('ZREM', V, token)
      end
    end
  end
  if not mine or mine.state == 'queued' then return mine end
  if mine.state ~= 'ended' then
    if not listed(me, list) then finish(mine, 'missing') elseif NOW <= mine.exp then return mine end
  end
  return get(me)
end

-- Whether one more permit may go to a caller with this limit; each holder's own limit stays true.
local function fits(limit)
  for _, h in ipairs(holders) do limit = math.min(limit, h.limit) end
  return #holders < limit
end

-- Offer what is free to the first in the queue, and wake them. `offered` is the last offer's fence.
local offered = false
local function settle(me)
  while waiting > 0 and fits(math.huge) do
    local head = call('ZRANGE', Q, 0, 0)[1]
    local r = head and get(head)
    if not head then waiting = 0 return end
    if r and r.state == 'queued' and not fits(tonumber(r.limit)) then return end
    waiting = waiting - call('ZREM', Q, head)
    call('ZREM', V, head)
    if r and r.state == 'queued' then
      r.state, r.fence, r.since, r.exp = 'offered', stamp(), MS, NOW + r.claim
      put(r)
      holders[#holders + 1], touched = r, true
      if head ~= me and r.wake ~= '' then
        offered = r.fence
        if call('LPUSH', wake_list(r), head) > 1000 then call('LTRIM', wake_list(r), 0, 999) end
        call('PEXPIRE', wake_list(r), r.claim + LIVE)
      end
    end
  end
end
