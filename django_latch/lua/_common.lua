-- Shared by every lock script: put before each of them as it is.
-- KEYS  1 stamp (last fence or ticket)   2 index (zset: name -> expiry)   3 events (stream)
--       4 due (zset: name -> until when its next run is looked after)
--       5 records R (hash: token -> record or tomb; '@' -> tokens of the holders)
--       6 queue Q (zset: token -> ticket)       7 liveness V (zset: token -> deadline)
--       8 tombs P (zset: token -> forget at)    9 finished jobs L (zset: job -> forget at)
--       10 next run J (hash: job, payload, until)
-- ARGV  1 grace ms   2 events: 0 none, 1 problems, 2 all   3 events kept   4 name   5 live ms
local call = redis.call
local STAMP, INDEX, EVENTS, DUE, R, Q, V, P, L, J = unpack(KEYS)
local GRACE, LEVEL, NAME, LIVE = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[4], tonumber(ARGV[5])
local WEEK = 604800000  -- ms; longer than any error of a server's clock
local RESENT = 4e15     -- added to the score in P of tombs that must last: a band of their own
local TOMBS = 32        -- others kept; up to twice as many before they are cut back
-- The time: microseconds and milliseconds as text, and milliseconds as a number. Fences and tickets come
-- from it and stay text, all their digits: numbers are costly to write down, and keep 14.
local clock = call('TIME')
local US = clock[1] .. string.sub('00000' .. clock[2], -6)
local MS = string.sub(US, 1, -4)
local NOW = tonumber(MS)

-- Note what happened, where the setting wants it (level). The stream never holds a token.
local function event(level, kind, r, ...)
  if LEVEL < level then return end
  call('XADD', EVENTS, 'MAXLEN', '~', ARGV[3], '*', 'kind', kind, 'name', NAME, 'at', MS,
    'fence', r.fence or '0', 'owner', r.owner or '', ...)
  call('PEXPIRE', EVENTS, WEEK)
end

-- The life in ms to give to keys that must live at least so long: more, or each grant would have to raise it.
local function spare(ttl) return ttl + math.floor(ttl / 8) end

-- An answer: one text, its fields on lines of their own. No field holds a line break.
local function reply(...) return table.concat({ ... }, '\n') end
