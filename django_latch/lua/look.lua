-- Read a part of what is listed for many locks, or a little of one, without writing anything.
-- PARTS    _common
-- ARGV     6 what, see below  7 first place, or cursor  8 last place, or how many
-- RETURNS  a list, of what is said at each
local what, first, last = ARGV[6], ARGV[7], ARGV[8]
if what == 'count' then  -- how many locks are listed
  return { call('ZCARD', INDEX) }
elseif what == 'names' then  -- names of locks by expiry
  return call('ZRANGE', INDEX, first, last)
elseif what == 'reversed' then  -- the same, the last one first
  return call('ZREVRANGE', INDEX, first, last)
elseif what == 'due' then  -- names of locks whose next run is looked after, the first to be overdue first
  return call('ZRANGE', DUE, first, last)
elseif what == 'snapshots' then  -- names of snapshots of which anything is kept, the first to end first
  return call('ZRANGEBYSCORE', string.gsub(STAMP, 'stamp$', 'snapshots'), '(' .. MS, '+inf', 'LIMIT', first, last)
elseif what == 'next' then  -- of the next run of this lock: its job, and until when that must show itself
  local at = call('HMGET', J, 'job', 'until')
  return at[1] and at[1] ~= '' and at[2] and at or {}
elseif what == 'known' then  -- 1 if anything is remembered of this lock, else 0
  return { call('EXISTS', R) }
end
local found = {}
if what == 'scan' then  -- where to go on, then names of locks in no order
  local page = call('ZSCAN', INDEX, first, 'COUNT', last)
  found[1] = page[1]
  for i = 1, #page[2], 2 do found[#found + 1] = page[2][i] end
elseif what == 'events' then  -- the latest first: of each how many words follow, and they
  for _, entry in ipairs(call('XREVRANGE', EVENTS, '+', '-', 'COUNT', last)) do
    found[#found + 1] = #entry[2]
    for _, word in ipairs(entry[2]) do found[#found + 1] = word end
  end
else
  error('LATCHARGS 6')
end
return found
