-- The one next run of a lock (on_conflict="rerun"): carried by the message of one job, with the arguments
-- of the latest call. Its carrier must show itself before `until`, or another may carry it.
-- PARTS    _common
-- ARGV     6 claim: a call that found the lock held; raise: its carrier is sent again;
--            revive: somebody who found it overdue sends it again   7 live ms   8 job  9 payload
-- RETURNS  carrier job payload | merged job payload, with the carrier's job | none '' ''
local what, live, job, payload = ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
local at = call('HMGET', J, 'job', 'payload', 'until')
local taken = at[1] and at[1] ~= ''
local overdue = taken and NOW > tonumber(at[3])
if what == 'claim' and at[1] ~= job then
  if taken and not overdue then
    call('HSET', J, 'payload', payload)
    return reply('merged', at[1], payload)
  end
  call('HSET', J, 'job', job, 'payload', payload)  -- an overdue one had the arguments of an earlier call
elseif not taken or what == 'raise' and at[1] ~= job or what == 'revive' and not overdue then
  return reply('none', '', '')
else
  job, payload = at[1], at[2]  -- also for a copy of the carrier's message: later arguments stay
end
call('HSET', J, 'until', NOW + live)
call('PEXPIRE', J, math.max(call('PTTL', J), WEEK))
call('ZADD', DUE, NOW + live, NAME)
call('PEXPIRE', DUE, WEEK)
return reply('carrier', job, payload)
