-- Bring list, index and deadlines in line with what was written. Put after _keep.lua and _turns.lua.
local function close_books()
  if not touched then return end
  local last, list = 0, {}
  for i, h in ipairs(holders) do last, list[i] = math.max(last, h.exp), h.token end
  if waiting > 0 then last = math.max(last, NOW + LIVE) end
  local names = table.concat(list, ' ')
  if names == '' then call('HDEL', R, '@') elseif names ~= listing then call('HSET', R, '@', names) end
  if last == 0 then return rest() end
  need = math.max(need, last - NOW)
  call('ZADD', INDEX, last, NAME)
  keep_index(need)
  keep(need, joined and Q, joined and V, buried and P)
end
