-- The counter of a bucket, which mints fences and tickets: the server's time in microseconds,
-- or one more than the last. So it grows on after the loss of all data, too.
local function stamp()
  local s = math.max(tonumber(call('GET', STAMP) or 0) + 1, US)
  call('SET', STAMP, digits(s), 'PX', WEEK)
  return s
end
