-- Read who waits for a lock, the next one first, without writing anything.
-- PARTS    _common _read
-- ARGV     6 most to tell
-- RETURNS  now, then ticket and owner of each waiter that lives
local reply = { NOW }
for _, token in ipairs(call('ZRANGE', Q, 0, ARGV[6] - 1)) do
  local r = get(token)
  if r and r.state == 'queued' and tonumber(call('ZSCORE', V, token) or 0) >= NOW then
    reply[#reply + 1] = r.ticket
    reply[#reply + 1] = r.owner
  end
end
return reply
