-- The one next run of a lock (on_conflict="rerun"): carried by the message of one job, with the arguments
-- of the latest call. Its carrier must show itself before `until`, or another may carry it.
-- A payload begins with two lines: whose arguments it has (the task), and when the call was made.
-- PARTS    _common
-- ARGV     6 claim: a call that found the lock held; raise: its carrier is sent again;
--            revive: somebody who found it overdue sends it again; pass: its carrier will not run, and
--            the payload is when that one's own call was made, and the job that is to carry it instead
--          7 live ms   8 job  9 payload
-- RETURNS  carrier job payload | merged job payload, with the carrier's job
--          | other job '': the next run is another task's | none '' ''
local what, live, job, payload = ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
local at = call('HMGET', J, 'job', 'payload', 'until', 'ran')
local taken = at[1] and at[1] ~= ''
local overdue = taken and NOW > tonumber(at[3])
local function parts(text)
  local task, made = string.match(text, '^([^\n]*)\n(%d*)')
  return task, tonumber(made or 0) or 0
end
-- Its carrier comes again and nothing is known of it: the data was lost, and only the message is left.
if what == 'raise' and not taken and at[4] ~= job then what = 'claim' end
if what == 'pass' then
  local own, heir = string.match(payload, '^(%d+)\n(.*)$')
  if taken and at[1] == job then
    local _, made = parts(at[2])
    if made == tonumber(own) then  -- no later call has left its arguments
      call('HSET', J, 'job', '')
      taken = false
    else
      at[1] = heir
      call('HSET', J, 'job', heir)
    end
  end
  job = heir
end
if what == 'claim' and at[1] ~= job then
  if taken then
    local task, made = parts(payload)
    local other, latest = parts(at[2])
    if task ~= other then return reply('other', at[1], '') end
    if made < latest then payload = at[2] end  -- calls may be met in another order than made
  end
  call('HSET', J, 'job', taken and not overdue and at[1] or job, 'payload', payload)
  if taken and not overdue then return reply('merged', at[1], payload) end
elseif not taken or (what == 'raise' or what == 'pass') and at[1] ~= job or what == 'revive' and not overdue then
  if not taken then call('ZREM', DUE, NAME) end
  return reply('none', '', '')
else
  job, payload = at[1], at[2]  -- also for a copy of the carrier's message: later arguments stay
end
call('HSET', J, 'until', NOW + live)
call('PEXPIRE', J, math.max(call('PTTL', J), WEEK))
call('ZADD', DUE, NOW + live, NAME)
call('PEXPIRE', DUE, WEEK)
return reply('carrier', job, payload)
