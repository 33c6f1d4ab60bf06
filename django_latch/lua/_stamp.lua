-- The counter of a bucket, which mints fences and tickets: the server's time in microseconds,
-- or one more than the last. So it grows on after the loss of all data, too.
local function stamp()  -- kept for a week
  local last = tonumber(call('SET', STAMP, US, 'PX', '604800000', 'GET') or 0) or 0
  if last < tonumber(US) then return US end
  local next = string.format('%.0f', last + 1)
  call('SET', STAMP, next, 'PX', '604800000')
  return next
end
