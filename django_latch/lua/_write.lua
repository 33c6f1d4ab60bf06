-- Writing what is held or waited for. Put after _common.lua.
local need = 0  -- ms from now until the last moment a record written here matters

-- Numbers from the client, as the text that they are: refused before anything is written.
local function numbers(first, last)
  for i = first, last do
    if not string.find(ARGV[i], '^%d+$') or #ARGV[i] > 13 then error('LATCHARGS ' .. i) end
  end
  return unpack(ARGV, first, last)
end

-- Write a hold or a place: state, fence, exp (ms), lease (ms), claim (ms), limit, ticket (us),
-- since (ms), hold (not free before, ms), wake (id of the wake list), owner (JSON).
local function put(r, ...)
  call('HSET', R, r.token, r.state .. '|' .. r.fence .. '|' .. r.exp .. '|' .. r.lease .. '|' .. r.claim .. '|' ..
    r.limit .. '|' .. r.ticket .. '|' .. r.since .. '|' .. r.hold .. '|' .. r.wake .. '|' .. r.owner, ...)
  need = math.max(need, r.exp - NOW)
end

-- The lock's keys live as long as what is written in them, and GRACE: raised, and never lowered here.
-- All end together, or a record in R would outlive the set (Q, V, P) in which it is listed.
-- `...`: those of the sets that may be new, or false.
local function keep(...)
  local had, ttl = call('PTTL', R), need + GRACE
  if had < ttl then
    for _, key in ipairs({ R, Q, V, P }) do call('PEXPIRE', key, ttl) end
  else
    for _, key in ipairs({ ... }) do if key then call('PEXPIRE', key, had) end end
  end
end

-- The index has no records of its own: it is kept a week longer than what it lists.
local function keep_index()
  if call('PTTL', INDEX) < need + WEEK then call('PEXPIRE', INDEX, need + 2 * WEEK) end
end
