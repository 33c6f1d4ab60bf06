"""What a page asks of Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from django.test import Client
from redis.connection import AbstractConnection

from django_latch import inventory
from tests.admin.pages import LIST
from tests.holding import Hold

PAGES = {
    "list": (LIST, {}),
    "second page": (LIST, {"p": "2"}),
    "search": (LIST, {"q": "lock"}),
    "filter": (LIST, {"worker": "w1"}),
    "order": (LIST, {"o": "2"}),
    "all": (LIST, {"all": ""}),
    "detail": (LIST + "lock1/change/", {}),
    "history": (LIST + "lock1/history/", {}),
    "confirmation": (LIST + "release/", {"name": "lock1"}),
    "posted fields in a GET": (
        LIST + "release/",
        {"name": "lock1", "lease": "1:00000000:lock1", "reason": "x"},
    ),
    "an action in a GET": (LIST, {"action": "release_selected", "_selected_action": "lock1"}),
}

#: What a page may cost at most, in round trips, whatever the number of locks.
TRIPS = {"list": 2, "second page": 2, "search": 2, "filter": 2, "order": 2, "detail": 1}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """What is sent to Redis: an entry is a round trip."""
    sends: list[object] = []
    real = AbstractConnection.send_packed_command

    def send(self: AbstractConnection, command: object, *args: object, **kwargs: object) -> None:
        sends.append(command)
        real(self, command, *args, **kwargs)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", send)
    return sends


@pytest.mark.parametrize("page", TRIPS)
def test_the_round_trips_do_not_grow_with_the_locks(
    client: Client, hold: Hold, sent: list[object], page: str
) -> None:
    url, query = PAGES[page]
    costs = []
    for first, last in ((0, 103), (103, 250)):
        for number in range(first, last):
            hold(f"lock{number}", worker=f"w{number % 3}")
        client.get(url, query)  # connected, and the scripts are known
        sent.clear()
        assert client.get(url, query).status_code == 200
        costs.append(len(sent))
    assert costs[0] == costs[1] <= TRIPS[page]


def test_selecting_many_costs_no_more_than_selecting_few(
    client: Client, hold: Hold, sent: list[object]
) -> None:
    costs = []
    for count in (3, 90):
        names = [f"lock{count}-{number}" for number in range(count)]
        for name in names:
            hold(name)
        data = {"action": "release_selected", "_selected_action": names, "index": "0"}
        client.post(LIST, data)  # connected, and the scripts are known
        sent.clear()
        assert client.post(LIST, data).status_code == 200
        costs.append(len(sent))
    assert costs[0] == costs[1] <= 5


@pytest.mark.parametrize("page", PAGES)
def test_looking_writes_nothing(client: Client, hold: Hold, raw: redis.Redis, page: str) -> None:
    hold("lock1", worker="w1")

    def writes() -> object:
        return raw.info("persistence")["rdb_changes_since_last_save"]

    before = writes()
    url, query = PAGES[page]
    for look in (client.get, client.head):
        assert look(url, query).status_code in (200, 302)
    assert writes() == before
    assert inventory.get("lock1") is not None
