-- What R knows of a token. Put after _common.lua.
-- A record as a table: a hold (held, offered, cooling), a place (queued) or a tomb (ended); false where
-- the token is unknown, or forgotten.
local function parse(token, raw)
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

-- The record of a token, and the list of the holders' tokens.
local function look(token)
  local at = call('HMGET', R, token, '@')
  return parse(token, at[1]), at[2] or ''
end

-- Whether a token stands in such a list: a record that does not is no hold.
local function listed(token, list)
  return string.find(' ' .. list .. ' ', ' ' .. token .. ' ', 1, true) ~= nil
end

local function get(token) return parse(token, call('HGET', R, token)) end
