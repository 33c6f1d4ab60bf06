-- Settle a lock whose entry in the index has expired; what its records say decides, not the entry.
-- PARTS    _common _keep _read _tombs _write _stamp _ends _turns _books
-- ARGV
-- RETURNS  holders waiters
if call('EXISTS', R) == 0 then
  -- Its records outlived the lease by GRACE and nobody came: the end was not noted yet.
  if call('ZREM', INDEX, NAME) == 1 then event(1, 'expired', {}) end
  return { 0, 0 }
end
local sound, problem = pcall(function()
  sweep('', false, call('HGET', R, '@') or '')
  settle('')
  touched = true
  close_books()
end)
if not sound then
  call('ZREM', INDEX, NAME)  -- or every acquire would meet it again; latch_clear finds its keys
  error(problem)
end
return { #holders, waiting }
