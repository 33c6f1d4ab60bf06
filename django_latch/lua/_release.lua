-- The arguments of end.lua, and the release of the only holder. Put after _tombs.lua.
local reason, resent, token, fence, job, note = ARGV[6], ARGV[7] ~= '0', ARGV[8], ARGV[9], ARGV[10], ARGV[12]
local r, list = look(token)
local function ended(word, what) return reply('ended', word, what.held or 0, format('%.0f', what.fence)) end
if r and fence ~= '' and fence ~= format('%.0f', r.fence) then return ended('superseded', r) end
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

-- Nobody else holds and nobody waits: most calls end here. The first write passes when memory is full.
if list == token and r and r.state == 'held' and NOW <= r.exp and NOW >= r.hold and call('EXISTS', Q) == 0 then
  call('HDEL', R, '@')
  bury(r, reason, resent)
  rest()
  note_end()
  return ended(reason, r)
end
