-- Bring list, index and deadlines in line with what was written. Put after _turns.lua.
local function close_books()
  if not touched then return end
  local last, list = 0, {}
  for i, h in ipairs(holders) do last, list[i] = math.max(last, h.exp), h.token end
  waiting = waiting and call('EXISTS', Q) == 1
  if waiting then last = math.max(last, NOW + LIVE) end
  if #list > 0 then call('HSET', R, '@', table.concat(list, ' ')) else call('HDEL', R, '@') end
  if last == 0 then return rest() end
  need = math.max(need, last - NOW)
  call('ZADD', INDEX, last, NAME)
  keep_index()
  keep(Q, V, P)
end
