-- Shared by every lock script: put before each of them as it is.
-- KEYS  1 records R (hash: token -> record or tomb)   2 holders H (zset: token -> expiry)
--       3 queue Q (zset: token -> ticket)             4 liveness V (zset: token -> deadline)
--       5 tombs P (zset: token -> forget at)          6 finished jobs L (zset: job -> forget at)
--       7 stamp (last fence or ticket)   8 index (zset: name -> expiry)   9 events (stream)
-- ARGV  1 grace ms   2 events: 0 none, 1 problems, 2 all   3 events kept   4 name   5 live ms
local call = redis.call
local R, H, Q, V, P, L, STAMP, INDEX, EVENTS = unpack(KEYS)
local GRACE, LEVEL, KEPT = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local NAME, LIVE = ARGV[4], tonumber(ARGV[5])
local WEEK = 604800000  -- ms; longer than any error of a server's clock
local RESENT = 4e15     -- added to the score in P of tombs that must last: a band of their own
local clock = call('TIME')
local US = clock[1] * 1000000 + clock[2]
local NOW = math.floor(US / 1000)
local need = 0          -- ms from now until the last moment a record written here matters
local touched = false   -- whether anything of this lock was written

-- All digits of a fence or ticket; Lua's own conversion keeps 14, enough for milliseconds.
local function digits(n) return string.format('%.0f', n) end

-- A number from the client: refused before anything is written.
local function whole(i, least)
  local n = tonumber(ARGV[i])
  if not n or n ~= math.floor(n) or n < least or n > 9e15 then error('LATCHARGS ' .. i) end
  return n
end

-- What R knows of a token: a hold, a place in the queue or a tomb (`ended`); false where nothing.
local function get(token)
  local raw = call('HGET', R, token)
  if not raw then return false end
  local r = { token = token, state = 'ended' }
  local reason, fence, ticket, held = string.match(raw, '^ended|([%l_]+)|(%d+)|(%d+)|(%d+)$')
  if reason then
    if tonumber(call('ZSCORE', P, token) or 0) % RESENT < NOW then return false end
    r.reason, r.fence, r.ticket, r.held = reason, tonumber(fence), tonumber(ticket), tonumber(held)
    return r
  end
  local n = { string.match(raw,
    '^(%l+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%x*)|(.*)$') }
  if not n[1] then error('LATCHCORRUPT ' .. R) end
  r.state, r.wake, r.owner = n[1], n[10], n[11]
  r.fence, r.exp, r.lease, r.claim = tonumber(n[2]), tonumber(n[3]), tonumber(n[4]), tonumber(n[5])
  r.limit, r.ticket, r.since, r.hold = tonumber(n[6]), tonumber(n[7]), tonumber(n[8]), tonumber(n[9])
  return r
end

-- Write a hold or a place. Fields: state, fence, exp (ms), lease (ms), claim (ms), limit, ticket (us),
-- since (ms), hold (not free before, ms), wake (id of the wake list), owner (JSON).
local function put(r)
  call('HSET', R, r.token, table.concat({ r.state, digits(r.fence), r.exp, r.lease, r.claim, r.limit,
    digits(r.ticket), r.since, r.hold, r.wake, r.owner }, '|'))
  need, touched = math.max(need, r.exp - NOW), true
end

-- Note what happened, where the setting wants it (level). The stream never holds a token.
local function event(level, kind, r, ...)
  if LEVEL < level then return end
  call('XADD', EVENTS, 'MAXLEN', '~', KEPT, '*', 'kind', kind, 'name', NAME, 'at', NOW,
    'fence', digits(r.fence or 0), 'owner', r.owner or '', ...)
  call('PEXPIRE', EVENTS, WEEK)
end

-- Every key lives as long as what it holds and GRACE: raised, and never lowered here.
local function keep(waiting)
  local ttl = math.max(call('PTTL', R), need + GRACE)
  call('PEXPIRE', R, ttl)
  call('PEXPIRE', H, ttl)
  if waiting then
    call('PEXPIRE', Q, ttl)
    call('PEXPIRE', V, ttl)
  end
end

-- Keep the index, which has no records of its own, longer than what it lists.
local function keep_index()
  if call('PTTL', INDEX) < need + WEEK / 2 then call('PEXPIRE', INDEX, need + WEEK) end
end
