-- Read a lock without writing anything.
-- PARTS    _common _read
-- ARGV
-- RETURNS  now waiters, then token and raw record of each live holder
local reply = { NOW, call('ZCARD', Q) }
for token in string.gmatch(call('HGET', R, '@') or '', '%S+') do
  local raw = call('HGET', R, token)
  local r = parse(token, raw)
  if r and r.state ~= 'ended' and r.state ~= 'queued' and NOW <= r.exp then
    reply[#reply + 1] = token
    reply[#reply + 1] = raw
  end
end
return reply
