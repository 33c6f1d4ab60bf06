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

-- The lock's keys live as long as what is written in them, and GRACE: raised, and never lowered here.
-- All end together, or a record in R would outlive the set (Q, V, P) in which it is listed.
local function keep(...)
  local had, ttl = call('PTTL', R), need + GRACE
  if had < ttl then call('PEXPIRE', R, ttl) else ttl = had end
  for _, key in ipairs({ ... }) do call('PEXPIRE', key, ttl) end
end

-- The index has no records of its own: it is kept a week longer than what it lists.
local function keep_index()
  if call('PTTL', INDEX) < need + WEEK then call('PEXPIRE', INDEX, need + 2 * WEEK) end
end
