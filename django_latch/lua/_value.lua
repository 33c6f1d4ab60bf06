-- The keys of a snapshot; the lock of the same name is held by whoever computes it. Put after _common.lua.
--   S (hash)       m -> fence|made|fresh until|kept until|took; e -> failures|not before|error; v:SHAPE -> value
--   N (stream)     one entry, a new one at each change: waiters read it
--   snapshots (zset: name -> until when anything is kept of it)
local BASE = string.gsub(STAMP, 'stamp$', '')
local S, N, LIST = BASE .. 'S:' .. NAME, BASE .. 'N:' .. NAME, BASE .. 'snapshots'
