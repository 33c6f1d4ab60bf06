-- What is kept of a snapshot. A fresh value is the answer at once, and nothing else is looked at. Put after _value.lua.
local token, unreadable = ARGV[10], ARGV[11]
local at = call('HMGET', S, 'm', 'e', ARGV[7])
local fence, made, fresh, kept, took = string.match(at[1] or '', '^(%d+)|(%d+)|(%d+)|(%d+)|(%d+)$')
local failures, not_before, problem = string.match(at[2] or '', '^(%d+)|(%d+)|(.*)$')
local state, value = 'miss', at[3]
if fence and value and fence ~= unreadable and NOW < tonumber(kept) then
  -- A value from a time that has yet to come: the server's clock was set back, and its age is not known.
  state = NOW >= tonumber(made) and NOW < tonumber(fresh) and 'hit' or 'stale'
end

local function answer(role, holder, left, since)
  local of_value = state == 'miss' and '0\n0\n0\n0' or
    reply(fence, math.max(NOW - made, 0), fresh - NOW, took)
  local head = reply(state, of_value, role, holder, left, since, failures or '0',
    failures and math.max(not_before - NOW, 0) or 0, problem or '')
  if state == 'miss' then return { head } end
  return { head, value }
end

if state == 'hit' then return answer('', '0', 0, '0-0') end
