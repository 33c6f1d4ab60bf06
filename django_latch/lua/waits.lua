-- Say what an agent waits for, and read what another one waits for: for the search for deadlocks.
-- An entry counts for LIVE ms; the waiter writes it again in every slice.
-- PARTS    _common
-- ARGV     6 agent that waits for this lock, or ''  7 the other agent, or ''
-- RETURNS  name of the lock the other waits for, or ''
local waits = string.gsub(STAMP, 'stamp$', 'waits')
local function valid(raw)
  local ends, name = string.match(raw or '', '^(%d+)|(.*)$')
  return ends and tonumber(ends) >= NOW and name
end
if ARGV[6] ~= '' then
  local new = call('HSET', waits, ARGV[6], NOW + LIVE .. '|' .. NAME)
  call('PEXPIRE', waits, math.max(call('PTTL', waits), LIVE + GRACE))
  if new == 1 and call('HLEN', waits) % 128 == 0 then  -- now and then: threads and tasks come and go
    local all = call('HGETALL', waits)
    for i = 1, #all, 2 do
      if not valid(all[i + 1]) then call('HDEL', waits, all[i]) end
    end
  end
end
return ARGV[7] ~= '' and valid(call('HGET', waits, ARGV[7])) or ''
