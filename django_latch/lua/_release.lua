-- The arguments of end.lua, and the release of the only holder. Put after _ends.lua.
local token, reason, fence, resent, job, note = ARGV[6], ARGV[7], ARGV[8], ARGV[9] == '1', ARGV[10], ARGV[12]
local life = whole(11, 0)
local r = get(token)
if r and fence ~= '' and fence ~= digits(r.fence) then return { 'ended', 'superseded', 0, r.fence } end
if r and r.state == 'ended' and r.reason ~= 'lapsed' then return { 'ended', r.reason, r.held, r.fence } end
if r or reason == 'abandoned' then call('ZREM', P, '') end  -- a first write that passes when memory is full

local function note_end()
  local cleared = reason == 'revoked'
  event(cleared and 1 or 2, cleared and 'cleared' or reason, r, 'held', r.held, 'note', note)
  if r.state == 'held' and job ~= '' then
    call('ZREMRANGEBYSCORE', L, '-inf', NOW)
    call('ZADD', L, NOW + life, job)
    call('PEXPIRE', L, math.max(call('PTTL', L), life))
  end
end

-- Nobody else holds and nobody waits: most calls end here.
if r and r.state == 'held' and NOW <= r.exp and NOW >= r.hold and call('EXISTS', Q) == 0
  and call('ZREM', H, token) == 1 then
  if call('EXISTS', H) == 0 then
    bury(r, reason, resent)
    note_end()
    rest()
    return { 'ended', reason, r.held, r.fence }
  end
  call('ZADD', H, r.exp, token)
end
