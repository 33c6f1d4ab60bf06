-- Read a lock without writing anything.
-- PARTS    _common
-- ARGV
-- RETURNS  now waiters, then token and raw record of each live holder
local reply = { NOW, call('ZCARD', Q) }
for _, token in ipairs(call('ZRANGE', H, 0, -1)) do
  local r = get(token)
  if r and r.state ~= 'ended' and r.state ~= 'queued' and NOW <= r.exp then
    reply[#reply + 1] = token
    reply[#reply + 1] = call('HGET', R, token)
  end
end
return reply
