-- A caller's place in the queue. Put after _turns.lua and _grant.lua.

local function enqueue(before)
  joined, touched = true, true
  local r = { token = token, state = 'queued', fence = '0', exp = NOW + LIVE, lease = lease, claim = claim,
    limit = limit, ticket = known, since = MS, hold = 0, wake = wake, owner = owner }
  if not (before and before.state == 'queued') then call('ZREM', P, token) end  -- no tomb any more
  call('ZADD', V, NOW + LIVE, token)
  waiting = waiting + call('ZADD', Q, known, token)
  put(r)
  return r
end

-- A dead waiter at the head should not cost a whole claim: the head of the queue may name an offer,
-- at least 20 ms old and with its wake message unread, that then ends as if it had lapsed.
local function standby()
  local silent = ARGV[18]
  if silent == '0' or call('ZRANGE', Q, 0, 0)[1] ~= token then return end
  for _, h in ipairs(holders) do
    if h.fence == silent and h.state == 'offered' and NOW - h.since >= 20 and call('LPOS', wake_list(h), h.token) then
      return finish(h, 'lapsed')
    end
  end
end
