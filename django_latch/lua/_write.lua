-- Writing what is held or waited for. Put after _common.lua.
local need = 0  -- ms from now until the last moment a record written here matters

-- Numbers from the client: refused before anything is written. ARGV comes as text.
local function numbers(first, last)
  local n = {}
  for i = first, last do
    n[i] = tonumber(ARGV[i])
    if not n[i] or n[i] ~= math.floor(n[i]) or n[i] < 0 or n[i] > 9e15 then error('LATCHARGS ' .. i) end
  end
  return n
end

-- Write a hold or a place: state, fence, exp (ms), lease (ms), claim (ms), limit, ticket (us),
-- since (ms), hold (not free before, ms), wake (id of the wake list), owner (JSON).
local function put(r, ...)
  local record = table.concat({ r.state, r.digits or format('%.0f', r.fence), r.exp, r.lease, r.claim, r.limit,
    r.ticket == 0 and '0' or format('%.0f', r.ticket), r.since, r.hold, r.wake, r.owner }, '|')
  call('HSET', R, r.token, record, ...)
  need = math.max(need, r.exp - NOW)
end

-- A key lives as long as what it holds and a margin: raised, and never lowered here. The index, which
-- has no records of its own, is kept a week longer.
local function keep(key, margin)
  local ttl = need + margin
  if call('PTTL', key) < ttl then call('PEXPIRE', key, key == INDEX and ttl + WEEK or ttl) end
end
