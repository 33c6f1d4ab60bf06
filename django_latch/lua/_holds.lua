-- Whether a token has a hold that may be changed. Put after _read.lua.
-- Returns why not, as the answer to its owner, and in one word; nil where it has one.
local function refusal(r, list, token, fence)
  local why
  if not r then
    why = 'missing'
  elseif r.state == 'ended' then
    why = r.reason == 'lapsed' and 'missing' or r.reason
  elseif r.state ~= 'held' or not listed(token, list) then
    why = 'missing'
  elseif NOW > r.exp then
    why = 'expired'
  elseif fence ~= '' and fence ~= r.fence then
    why = 'superseded'
  end
  if why then return reply('ended', why, r and r.fence or '0'), why end
end
