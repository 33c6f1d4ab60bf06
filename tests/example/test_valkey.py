"""The embedded server: how it is set up, and that it ends with whoever started it."""

from __future__ import annotations

import signal
import socket
import sys

import pytest
import redis

from example_project.processes import Process, ProcessError, members
from example_project.valkey import EmbeddedValkey


def test_it_keeps_locks_in_memory_and_never_evicts_them(tmp_path):
    with EmbeddedValkey(tmp_path / "data") as server, redis.Redis.from_url(server.url) as client:
        config = client.config_get("*")
        assert config["maxmemory-policy"] == "noeviction"
        assert config["save"] == ""
        assert config["bind"] == "127.0.0.1"
        assert config["dir"] == str(tmp_path / "data")
        pid = server.pid
        assert members(pid) == [pid]
    assert members(pid) == []
    with pytest.raises(redis.ConnectionError):
        redis.Redis.from_url(server.url).ping()


def test_two_servers_do_not_meet(tmp_path):
    with EmbeddedValkey(tmp_path / "a") as one, EmbeddedValkey(tmp_path / "b") as two:
        redis.Redis.from_url(one.url).set("key", "of one")
        assert redis.Redis.from_url(two.url).get("key") is None


def test_a_port_in_use_is_an_error_with_the_reason(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ProcessError, match="Address already in use"):
            EmbeddedValkey(tmp_path, port).start()


def test_stopping_twice_and_without_a_start_is_quiet(tmp_path):
    server = EmbeddedValkey(tmp_path)
    server.stop()
    server.start()
    server.stop()
    server.stop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_foreground_until_a_signal(program, number):
    server = program("-m", "example_project.valkey", "--port", "0")
    url = server.read_until(r"Valkey \S+ on (redis:\S+);")[1]
    assert redis.Redis.from_url(url).ping()

    server.signal(number)

    assert server.finish() == 0
    assert server.processes() == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills them")
def test_it_ends_with_a_killed_parent(program, tmp_path, eventually):
    server = program("-m", "example_project.valkey", "--port", "0", TMPDIR=str(tmp_path))
    server.read_until("Valkey")
    assert len(server.processes()) == 2

    server.signal(signal.SIGKILL)
    server.finish()

    eventually(lambda: server.processes() == [])


def test_a_process_that_ignores_the_request_to_end_is_killed_with_its_children(tmp_path):
    stubborn = (
        "import signal, subprocess, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "subprocess.Popen(['sleep', '600'])\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n"
    )
    process = Process("stubborn", [sys.executable, "-c", stubborn], tmp_path / "log").start()
    while "ready" not in (tmp_path / "log").read_text():
        process.check()
    assert len(members(process.pid)) == 2
    group = process.pid

    process.stop(grace=0.1)

    assert members(group) == []


def test_a_process_that_ends_too_soon_says_why(tmp_path):
    command = [sys.executable, "-c", "import sys; sys.exit('out of paper')"]
    process = Process("printer", command, tmp_path / "log").start()
    process.wait()
    with pytest.raises(ProcessError, match=r"printer has ended(?s:.*)out of paper"):
        process.check()
