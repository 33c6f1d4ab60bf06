-- Say what an agent waits for, and read what another one waits for: for the search for deadlocks.
-- An entry counts for LIVE ms; the waiter writes it again in every slice.
-- PARTS    _common
-- ARGV     6 agent that waits for this lock, or ''  7 the other agent, or ''
-- RETURNS  name of the lock the other waits for, or ''
local waits = string.gsub(STAMP, 'stamp$', 'waits')
if ARGV[6] ~= '' then
  call('HSET', waits, ARGV[6], NOW + LIVE .. '|' .. NAME)
  call('PEXPIRE', waits, math.max(call('PTTL', waits), LIVE + GRACE))
end
local ends, name = string.match(ARGV[7] ~= '' and call('HGET', waits, ARGV[7]) or '', '^(%d+)|(.*)$')
return ends and tonumber(ends) >= NOW and name or ''
