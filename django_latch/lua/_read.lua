-- What R knows of a token. Put after _common.lua.
-- A record as a table: a hold (held, offered, cooling), a place (queued) or a tomb (ended); false where
-- the token is unknown, or forgotten. Its numbers are text, but for `exp`.
local function parse(token, raw)
  if not raw then return false end
  local state, fence, exp, lease, claim, limit, ticket, since, hold, wake, owner = string.match(raw,
    '^(%l+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%x*)|(.*)$')
  if state then
    return { token = token, state = state, fence = fence, exp = tonumber(exp), lease = lease, claim = claim,
      limit = limit, ticket = ticket, since = since, hold = hold, wake = wake, owner = owner }
  end
  local reason, last, place, held = string.match(raw, '^ended|([%l_]+)|(%d+)|(%d+)|(%d+)$')
  if not reason then error('LATCHCORRUPT ' .. R) end
  if tonumber(call('ZSCORE', P, token) or 0) % RESENT < NOW then return false end
  return { token = token, state = 'ended', reason = reason, fence = last, ticket = place, held = held }
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
