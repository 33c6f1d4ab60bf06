-- The arguments of end.lua, and its answers. Put after _freed.lua and _read.lua.
local reason, resent, token, job, note = ARGV[6], ARGV[7] ~= '0', ARGV[8], ARGV[10], ARGV[12]
local r, list = parse(token, seen[1]), seen[2] or ''
local function ended(word, what) return reply('ended', word, what.held or 0, what.fence) end
if r and ARGV[9] ~= '' and ARGV[9] ~= r.fence then return ended('superseded', r) end
if r and r.state == 'ended' and r.reason ~= 'lapsed' then return ended(r.reason, r) end
local function note_end()
  local cleared = reason == 'revoked'
  event(cleared and 1 or 2, cleared and 'cleared' or reason, r, 'held', r.held, 'note', note)
  if r.state == 'held' and job ~= '' then
    call('ZREMRANGEBYSCORE', L, '-inf', NOW)
    local life = tonumber(ARGV[11])
    call('ZADD', L, NOW + life, job)
    call('PEXPIRE', L, math.max(call('PTTL', L), life))
  end
end
