from __future__ import annotations

import pytest
import redis
from django.contrib.admin.models import LogEntry
from django.test import Client, override_settings

from django_latch import LatchNotHeld, inventory, signals
from django_latch.admin import LockAdmin
from tests.admin.pages import LIST, Page, ask, messages_of, names_of
from tests.holding import Hold
from tests.integration import audit

RELEASE = LIST + "release/"


def test_frees_the_lock_and_writes_down_who_and_why(client: Client, hold: Hold) -> None:
    lease = hold("sync:42")
    action, data = ask(client, "sync:42")
    response = client.post(action, {**data, "reason": "  stuck\tsince noon "}, follow=True)
    assert response.redirect_chain == [(LIST, 302)]
    assert messages_of(response) == ["1 lease was released."]
    assert inventory.get("sync:42") is None
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.user.username) == ("sync:42", "root")
    assert str(lease.fence) in entry.change_message
    assert "stuck\ufffdsince noon" in entry.change_message
    with pytest.raises(LatchNotHeld):
        lease.renew()


def test_tells_the_receivers(client: Client, hold: Hold) -> None:
    told: list[dict[str, object]] = []

    def receiver(**payload: object) -> None:
        told.append(payload)

    lease = hold("sync:42")
    signals.lock_force_released.connect(receiver)
    try:
        action, data = ask(client, "sync:42")
        client.post(action, {**data, "reason": "stuck"})
    finally:
        signals.lock_force_released.disconnect(receiver)
    (payload,) = told
    assert payload["actor"].startswith("auth.user:")
    assert (payload["name"], payload["fence"], payload["reason"]) == (
        "sync:42",
        lease.fence,
        "stuck",
    )


def test_a_lock_acquired_again_meanwhile_stays_and_the_page_says_so(
    client: Client, hold: Hold
) -> None:
    first = hold("sync:42")
    action, data = ask(client, "sync:42")
    first.release()
    second = hold("sync:42", label="the next run")
    response = client.post(action, {**data, "reason": "stuck"}, follow=True)
    (text,) = messages_of(response)
    assert "“sync:42” was not released" in text
    assert "the next run" in text
    second.renew()
    assert not LogEntry.objects.exists()


def test_a_lock_that_ended_meanwhile_is_said_to_have(client: Client, hold: Hold) -> None:
    lease = hold("sync:42")
    action, data = ask(client, "sync:42")
    lease.release()
    response = client.post(action, {**data, "reason": "stuck"}, follow=True)
    assert messages_of(response) == ["“sync:42” was not released: its lease had already ended."]


def test_twice_is_refused_once(client: Client, hold: Hold) -> None:
    hold("sync:42")
    action, data = ask(client, "sync:42")
    client.post(action, {**data, "reason": "stuck"})
    client.post(action, {**data, "reason": "stuck"})
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize("reason", ["", "   ", "x" * 201, None])
def test_without_a_reason_it_asks_again_about_the_same_lease(
    client: Client, hold: Hold, reason: str | None
) -> None:
    first = hold("sync:42")
    action, data = ask(client, "sync:42")
    first.release()
    hold("sync:42")
    response = client.post(action, data if reason is None else {**data, "reason": reason})
    assert response.status_code == 200
    assert Page(response).confirmation() == (action, data)
    assert "no longer holds it" in response.content.decode()
    assert "errorlist" in response.content.decode()
    assert inventory.get("sync:42") is not None


@pytest.mark.parametrize(
    "field", ["", "1:2", "x:0a0a0a0a:n", "1:0a0a0a0a:", "9" * 20 + ":0a0a0a0a:n"]
)
def test_a_malformed_lease_is_a_bad_request(client: Client, field: str) -> None:
    assert client.post(RELEASE, {"lease": field, "reason": "x"}).status_code == 400
    assert client.post(RELEASE, {"reason": "x"}).status_code == 400


@pytest.mark.parametrize("guess", ["fence", "fingerprint"])
def test_a_guessed_lease_frees_nothing(client: Client, hold: Hold, guess: str) -> None:
    lease = hold("sync:42")
    fence = lease.fence + (guess == "fence")
    fingerprint = "00000000" if guess == "fingerprint" else lease.fingerprint
    client.post(RELEASE, {"lease": f"{fence}:{fingerprint}:sync:42", "reason": "x"})
    lease.renew()


def test_one_of_several_holders(client: Client, hold: Hold) -> None:
    first, second = hold("mail", limit=2), hold("mail", limit=2)
    action, data = ask(client, "mail", fence=first.fence)
    client.post(action, {**data, "reason": "stuck"})
    assert [h.fence for h in inventory.get("mail").holders] == [second.fence]


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_page_of_a_lock_leads_to_one_of_several_holders(
    client: Client, hold: Hold, language: str
) -> None:
    first, second = hold("mail", limit=2), hold("mail", limit=2)
    with override_settings(USE_THOUSAND_SEPARATOR=True, LANGUAGE_CODE=language):
        page = Page(client.get(LIST + "mail/change/"))
        _, *links = [a["href"] for _, a in page.tags if a.get("class") == "latch-release"]
        for lease, link in zip((first, second), links, strict=True):
            _, data = Page(client.get(link)).confirmation()
            assert data["lease"] == [f"{lease.fence}:{lease.fingerprint}:mail"]


def select(client: Client, names: list[str], query: str = "", **more: str) -> Page:
    data = {"action": "release_selected", "_selected_action": names, "index": "0", **more}
    response = client.post(LIST + query, data)
    assert response.status_code == 200
    return Page(response)


def test_a_lock_that_cannot_be_read_keeps_no_other_from_being_freed(
    client: Client, hold: Hold, raw: redis.Redis
) -> None:
    leases = [hold(name) for name in ("a", "bad", "c")]
    raw.hset(audit.key("R", "bad"), leases[1].token, "junk")
    action, data = select(client, ["a", "bad", "c"]).confirmation()
    response = client.post(action, {**data, "reason": "stuck"}, follow=True)
    problem, done = messages_of(response)
    assert "R:bad" in problem
    assert done == "2 leases were released."
    assert [lock.name for lock in inventory.page(0, 10)] == ["bad"]
    raw.flushdb()


def test_the_action_frees_the_selected_ones(client: Client, hold: Hold) -> None:
    for name in "abc":
        hold(name)
    action, data = select(client, ["a", "c"]).confirmation()
    assert inventory.count() == 3  # asking frees nothing
    response = client.post(action, {**data, "reason": "stuck"}, follow=True)
    assert messages_of(response) == ["2 leases were released."]
    assert [lock.name for lock in inventory.page(0, 9)] == ["b"]
    assert {entry.object_id for entry in LogEntry.objects.all()} == {"a", "c"}


def test_the_action_across_pages_keeps_to_the_filter(client: Client, hold: Hold) -> None:
    for name, task in (("a", "x"), ("b", "y"), ("c", "x")):
        hold(name, task=task)
    page = select(client, ["a"], "?task=x", select_across="1")
    action, data = page.confirmation()
    client.post(action, {**data, "reason": "stuck"})
    assert [lock.name for lock in inventory.page(0, 9)] == ["b"]


def test_the_action_frees_a_bounded_number_and_says_so(client: Client, hold: Hold) -> None:
    for number in range(102):
        hold(f"lock{number}")
    data = {"action": "release_selected", "_selected_action": "lock0", "select_across": "1"}
    response = client.post(LIST, {**data, "index": "0"})
    assert len(Page(response).confirmation()[1]["lease"]) == 100
    assert "Only the first 100 leases are released at once." in response.content.decode()


def test_nothing_selected_frees_nothing(client: Client, hold: Hold) -> None:
    hold("a")
    client.post(LIST, {"action": "release_selected", "index": "0"})
    assert inventory.count() == 1


def test_what_is_gone_cannot_be_asked_about(client: Client) -> None:
    response = client.get(RELEASE, {"name": "gone"})
    assert "nothing to release" in response.content.decode()


def test_a_project_may_narrow_what_a_user_sees_and_frees(
    client: Client, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LockAdmin.get_queryset
    monkeypatch.setattr(
        LockAdmin,
        "get_queryset",
        lambda self, request: whole(self, request).filter(name__startswith="mine:"),
    )
    theirs, mine = hold("theirs", label="secret customer"), hold("mine:1")
    assert names_of(client.get(LIST)) == ["mine:1"]
    for page in ("theirs/change/", "theirs/history/", "their-free-one/history/"):
        assert client.get(LIST + page).status_code == 302
    assert client.get(LIST + "mine:free/history/").status_code == 200
    assert b"nothing to release" in client.get(RELEASE, {"name": "theirs"}).content
    data = [f"{lease.fence}:{lease.fingerprint}:{lease.name}" for lease in (theirs, mine)]
    response = client.post(RELEASE, {"lease": data, "reason": "x"}, follow=True)
    assert b"secret customer" not in response.content
    assert inventory.get("theirs") is not None
    assert inventory.get("mine:1") is None
