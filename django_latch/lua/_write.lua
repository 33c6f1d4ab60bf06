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
