-- The end of a compute. Put after _value.lua, _ends.lua and _turns.lua.

-- Wake everybody who waits for this snapshot, by one write.
local function tell_all()
  call('XADD', N, 'MAXLEN', '1', '*', 'at', MS)
  call('PEXPIRE', N, GRACE)
end

-- Something is kept of this snapshot for so many ms: list it as long, and drop from the list what has passed.
local function list_until(ms)
  call('ZREMRANGEBYSCORE', LIST, '-inf', '(' .. MS)
  call('ZADD', LIST, NOW + ms, NAME)
  if call('PTTL', LIST) < ms + GRACE then call('PEXPIRE', LIST, ms + 2 * GRACE) end
end

-- Whether a record is the hold of this election; fence 0: whichever its token got.
local function elected(r, fence) return r and r.state == 'held' and (r.fence == fence or fence == '0') end

-- The elected caller needs its lock no more.
local function dismiss(r, reason)
  finish(r, reason, reason ~= 'released')
  event(2, reason, r, 'held', r.held, 'note', '')
end
