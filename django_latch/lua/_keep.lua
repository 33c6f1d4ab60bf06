-- How long keys live. Put after _common.lua.
-- `need`: in how many ms the last moment comes at which something that was written matters.

-- The lock's keys live as long as what is written in them, and GRACE: raised, and never lowered here.
-- All end together, or a record in R would outlive the set (Q, V, P) in which it is listed.
-- `...`: those of the sets that may be new, or false.
local function keep(need, ...)
  local had = call('PTTL', R)
  if had < need + GRACE then
    for _, key in ipairs({ R, Q, V, P }) do call('PEXPIRE', key, spare(need + GRACE)) end
  else
    for _, key in ipairs({ ... }) do if key then call('PEXPIRE', key, had) end end
  end
end

-- The index has no records of its own: it is kept a week longer than what it lists.
local function keep_index(need)
  if call('PTTL', INDEX) < need + WEEK then call('PEXPIRE', INDEX, need + 2 * WEEK) end
end
