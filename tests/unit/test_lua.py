"""The scripts' headers say what the scripts do, and what Python sends and reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

import pytest

from django_latch.core import snapshot, verbs
from django_latch.core.calls import Call
from django_latch.store.scripts import KEYS, script

FOLDER = files("django_latch") / "lua"
SOURCES = {f.name.removesuffix(".lua"): f.read_text() for f in FOLDER.iterdir()}
VERBS = sorted(name for name in SOURCES if not name.startswith("_"))

ASK = verbs.Ask(name="n", ttl=1, owner="{}")
CALLER = verbs.Caller("t" * 32)

WANTED = snapshot.Wanted(
    name="n", fresh_for=1, keep_for=1, wait=1, ttl=1, max_hold=1, permits=1, slice=1
)

#: One call of each verb, as Python makes it.
CALLS: dict[str, Call] = {  # type: ignore[type-arg]
    call.verb: call
    for call in (
        verbs.request(ASK, CALLER),
        verbs.renew("n", "t", 1, 1),
        verbs.shorten("n", "t", 1, 1),
        verbs.adopt("n", "o", "t", 1, "{}", min_hold=1),
        verbs.end("n", "t", "released"),
        verbs.trim("n"),
        verbs.read("n"),
        verbs.queue("n", 1),
        verbs.known("n"),
        verbs.nudge("n", 1),
        verbs.waits("n"),
        verbs.account("n", "a", "m", 1, 1),
        verbs.slot("n", "claim", "j", 1),
        verbs.many(ASK, ["n"], ["t"]),
        snapshot.read(WANTED, "{}", "t"),
        snapshot.publish(WANTED, {}, "t", 1, 1),
        snapshot.fail(WANTED.name, "", "t"),
        snapshot.invalidate("n", 1),
    )
}

#: Everything the scripts may call: the subset of Redis 6.2 that they need.
COMMANDS = {
    *("TIME", "EXISTS", "PTTL", "PEXPIRE", "SET", "GET", "DEL"),
    *("HGET", "HMGET", "HSET", "HDEL", "HINCRBY", "HLEN", "HGETALL"),
    *("ZADD", "ZREM", "ZCARD", "ZCOUNT", "ZRANGE", "ZRANK", "ZSCORE", "ZRANGEBYSCORE"),
    *("ZREVRANGEBYSCORE", "ZREMRANGEBYSCORE"),
    *("LPUSH", "LTRIM", "LPOS", "XADD", "XLEN", "ZREVRANGE", "ZSCAN", "XREVRANGE"),
}

each_verb = pytest.mark.parametrize("verb", VERBS)


def header(name: str, field: str) -> str:
    """A field of a header, its further lines joined."""
    found = re.search(rf"^-- {field} *(.*(?:\n--    .*)*)", SOURCES[name], re.MULTILINE)
    assert found, f"{name}.lua has no {field}"
    return re.sub(r"\n--\s+", "  ", found[1])


def arguments(text: str) -> list[int]:
    """The numbers of the arguments a header describes."""
    return [int(n) for n in re.findall(r"(?:^|  )(\d+) \S", text)]


def commands(source: str) -> Iterator[str]:
    return (found[1] for found in re.finditer(r"call\('(\w+)'", source))


def test_every_script_has_its_verb_in_python() -> None:
    assert sorted(CALLS) == VERBS


@each_verb
def test_the_header_begins_with_what_it_is_for(verb: str) -> None:
    first = SOURCES[verb].splitlines()[0]
    assert re.match(r"^-- [A-Z].*[.:,;]?", first)
    assert len(header(verb, "RETURNS")) > 3


@each_verb
def test_its_parts_exist_and_stand_in_the_order_they_ask_for(verb: str) -> None:
    parts = header(verb, "PARTS").split()
    assert parts[0] == "_common"
    assert len(set(parts)) == len(parts)
    for at, part in enumerate(parts):
        for needed in re.findall(r"Put after (.*?)\.$", SOURCES[part], re.MULTILINE):
            for name in re.findall(r"_\w+", needed.replace(".lua", "")):
                assert name in parts[:at], f"{verb}: {part} asks for {name} before it"
    assert script(verb).text == "".join(SOURCES[part] for part in parts) + SOURCES[verb]


@each_verb
def test_python_sends_the_arguments_it_lists(verb: str) -> None:
    call, listed = CALLS[verb], arguments(header(verb, "ARGV"))
    sent = len(call.args) + len(call.own)
    if verb == "many":  # "... then name and token of each lock"
        listed += [10, 11]
    assert listed == list(range(6, 6 + sent))


@each_verb
def test_it_reads_no_argument_it_does_not_list(verb: str) -> None:
    last = 5 + len(CALLS[verb].args) + len(CALLS[verb].own)
    text = script(verb).text
    used = {int(n) for n in re.findall(r"ARGV\[(\d+)\]", text)}
    used |= {int(n) for pair in re.findall(r"numbers\((\d+), (\d+)\)", text) for n in pair}
    assert used <= set(range(1, last + 1))


def test_the_keys_are_listed_in_the_order_they_are_sent() -> None:
    text = header("_common", "KEYS")
    listed = dict(re.findall(r"(?:^| )(\d+) (?:[a-z ]+? )?(\w+) \(", text))
    assert [listed[str(n + 1)] for n in range(len(KEYS))] == list(KEYS)
    assert "local " + ", ".join(k if len(k) == 1 else k.upper() for k in KEYS) in SOURCES["_common"]


def test_the_shared_arguments_are_listed() -> None:
    assert arguments(header("_common", "ARGV")) == [1, 2, 3, 4, 5]


def samples(returns: str) -> Iterator[str]:
    """A reply of each form that a header names."""
    forms, _, held = returns.partition(", with HELD = ")
    for form in forms.split(" | "):
        if held:
            form = re.sub(r"\bHELD\b", re.split(r" of ", held)[0], form)
        word, *fields = form.partition(",")[0].split()
        values = ["{}" if field == "owner" else "7" for field in fields if field != "of"]
        yield "\n".join([word.removesuffix("..."), *values])


@pytest.mark.parametrize(
    "verb", ["request", "renew", "shorten", "adopt", "end", "slot", "snapshot_fail"]
)
def test_python_reads_every_form_of_its_answer(verb: str) -> None:
    given = list(samples(header(verb, "RETURNS")))
    assert len(given) >= 1
    for reply in given:
        parsed = CALLS[verb].parse(reply)
        assert CALLS[verb].parse(reply.encode()) == parsed
        assert parsed is not None


@each_verb
def test_it_keeps_to_redis_6_2(verb: str) -> None:
    text = script(verb).text
    assert set(commands(text)) <= COMMANDS
    assert not text.startswith("#!")
    assert not re.search(r"'PEXPIRE'[^\n]*'(GT|LT|NX|XX)'", text)
    assert "cjson" not in text


@pytest.mark.parametrize("verb", ["list", "look", "queue"])
def test_reading_writes_nothing(verb: str) -> None:
    assert set(commands(script(verb).text.split("-- An answer")[0] + SOURCES[verb])) <= {
        *("TIME", "HGET", "HMGET", "ZCARD", "ZRANGE", "ZSCORE", "ZRANGEBYSCORE"),
        *("EXISTS", "ZREVRANGE", "ZSCAN", "XREVRANGE"),
        *("XADD", "PEXPIRE"),  # in event(), which these never call
    }
    assert "event(" not in SOURCES[verb]


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_its_lines_are_in_ascii_and_it_sets_no_global(name: str) -> None:
    source = SOURCES[name]
    assert source.isascii()
    code = re.sub(r"--.*", "", source)
    for line in code.splitlines():
        assert not re.match(r"function \w", line), f"{name}.lua: a global function: {line}"
