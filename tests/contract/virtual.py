"""The scripts on a real server, under a clock that only the test moves.

A server's clock cannot be set for one client, and sleeping through leases would take hours. So
each script is sent with a prelude in place of its line ``local call = redis.call``. Through it the
script runs as it is, on real keys, but

- TIME is what the test has set;
- PEXPIRE, PTTL and SET .. PX keep the deadlines of keys in a hash, in the test's time. On the
  server the keys live for an hour, longer than any test, so that nothing goes by itself;
- whenever the test moves the clock, it deletes the keys whose deadlines have passed, as the
  server would have done.

A command that deals with time in another way is an error, so a script cannot slip past this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1
from typing import Any
from unittest import mock

import redis

from django_latch.store import exchange
from django_latch.store.scripts import Script, script

#: Where the test's time is kept, in microseconds.
CLOCK = "test:us"

#: Key -> when it goes, in ms of the test's time.
DEADLINES = "test:deadlines"

#: The moment at which tests begin, in microseconds.
BEGIN = 1_700_000_000_000_000

_LINE = "local call = redis.call\n"

_PRELUDE = """\
local call
do
  local real, deadlines, hour = redis.call, 'test:deadlines', 3600000
  local us = tonumber(real('GET', 'test:us'))
  local now = math.floor(us / 1000)
  local function number(n) return string.format('%.0f', n) end
  local function ends(key, ms)
    assert(ms == math.floor(ms) and ms > 0, 'PEXPIRE ' .. key .. ' ' .. ms)
    if real('PEXPIRE', key, hour) == 0 then return 0 end
    real('HSET', deadlines, key, number(now + ms))
    return 1
  end
  call = function(command, key, ...)
    if command == 'TIME' then return { number(math.floor(us / 1000000)), number(us % 1000000) } end
    if command == 'PEXPIRE' then return ends(key, tonumber(...)) end
    if command == 'PTTL' then
      local ttl = real('PTTL', key)
      return ttl > 0 and tonumber(real('HGET', deadlines, key)) - now or ttl
    end
    if command == 'SET' then
      local args = { ... }
      assert(args[2] == 'PX', 'SET without PX')
      local before = real('SET', key, args[1], 'PX', hour, unpack(args, 4))
      real('HSET', deadlines, key, number(now + args[3]))
      return before
    end
    for _, other in ipairs({ 'EXPIRE', 'TTL', 'PERSIST', 'SETEX', 'GETEX' }) do
      assert(not string.find(command, other), command .. ' is not in the tests yet')
    end
    return real(command, key, ...)
  end
end
"""

#: All keys, in one round trip. The stream is emptied, so each event is seen once.
_DUMP = """
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'stream' then
    value = redis.call('XRANGE', key, '-', '+')
    redis.call('XTRIM', key, 'MAXLEN', 0)
  else value = redis.call('GET', key) end
  found[#found + 1] = { key, redis.call('PTTL', key), value }
end
return found
"""


def _virtual(verb: str) -> Script:
    text = script(verb).text
    if text.count(_LINE) != 1 or text.count("redis.call") != 1:
        raise AssertionError(f"{verb}.lua reaches the server past the test's clock")
    text = text.replace(_LINE, _PRELUDE)
    return Script(verb, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


@contextmanager
def virtual_scripts() -> Iterator[None]:
    """Stores send their scripts with the prelude."""
    with mock.patch.object(exchange, "script", _virtual):
        yield


class VirtualServer:
    """The test's time on a server that nobody else uses meanwhile.

    Parameters:
        client: of the database that the store uses, decoding replies.
    """

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self._dump = client.register_script(_DUMP)
        self.us = BEGIN
        self.flush()

    def flush(self) -> None:
        """Lose everything but the time."""
        self.client.flushdb()
        self.client.set(CLOCK, self.us)

    def move(self, us: int) -> None:
        """Set the clock, forward or back; what has an end in the past is gone."""
        self.us = us
        self.client.set(CLOCK, us)
        gone = [key for key, at in self.client.hgetall(DEADLINES).items() if int(at) < us // 1000]
        if gone:
            self.client.delete(*gone)
            self.client.hdel(DEADLINES, *gone)

    def dump(self) -> tuple[dict[str, Any], dict[str, int]]:
        """All keys of the store with their values; and how long each will last, in ms.

        A key that never ends is an error.
        """
        keys = {}
        for key, ttl, value in self._dump():
            if key not in (CLOCK, DEADLINES):
                assert ttl > 0, f"{key} has no end"
                keys[key] = value
        deadlines = self.client.hgetall(DEADLINES)
        return keys, {key: int(deadlines[key]) - self.us // 1000 for key in keys}
