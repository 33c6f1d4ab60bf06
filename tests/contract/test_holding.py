"""What a holder may rely on."""

from __future__ import annotations

import pytest

from django_latch.core import verbs
from django_latch.core.replies import Busy, Closed, Ended, Granted, Renewed
from tests.contract.bench import Bench, token


class TestIdempotentPerToken:
    def test_a_request_again_gets_the_same_lease(self, lock: Bench) -> None:
        first = lock.request(1, lease=30)
        lock.advance(10)
        again = lock.request(1, lease=30)
        assert (again.fence, again.left) == (first.fence, 20_000)
        assert lock.holders() == ["held 1"]

    def test_a_release_again_gets_the_same_answer(self, lock: Bench) -> None:
        fence = lock.request(1).fence
        lock.advance(2.5)
        assert lock.release(1, fence) == lock.release(1, fence) == Closed("released", 2500, fence)

    def test_a_renewal_again_gets_the_same_answer(self, lock: Bench) -> None:
        fence = lock.request(1).fence
        assert lock.renew(1, 60, fence) == lock.renew(1, 60, fence)

    def test_a_refused_try_leaves_nothing(self, lock: Bench) -> None:
        lock.request(1)
        assert isinstance(lock.request(2), Busy)
        assert isinstance(lock.request(2), Busy)
        lock.release(1)
        assert lock.holders() == []


class TestReleaseByToken:
    def test_another_token_releases_nothing(self, lock: Bench) -> None:
        lock.request(1)
        assert lock.release(2).reason == "taken"
        assert lock.holders() == ["held 1"]

    def test_a_free_lock_was_never_held(self, lock: Bench) -> None:
        assert lock.release(1).reason == "never_held"

    def test_another_fence_releases_nothing(self, lock: Bench) -> None:
        fence = lock.request(1).fence
        assert lock.release(1, fence - 1).reason == "superseded"
        assert lock.holders() == ["held 1"]

    def test_whoever_took_it_meanwhile_keeps_it(self, lock: Bench) -> None:
        fence = lock.request(1, lease=1).fence
        lock.advance(1.5)
        lock.request(2)
        assert lock.release(1, fence).reason == "expired"
        assert lock.holders() == ["held 2"]


class TestExpiryIsFinal:
    @pytest.mark.parametrize("late", [0.001, 1, 60], ids=lambda late: f"{late} s late")
    def test_no_renewal_brings_it_back(self, lock: Bench, late: float) -> None:
        fence = lock.request(1, lease=1).fence
        lock.advance(1 + late)
        assert lock.renew(1, 60, fence) == Ended("expired", fence)
        assert lock.holders() == []

    def test_nor_does_another_request(self, lock: Bench) -> None:
        lock.request(1, lease=1)
        lock.advance(1.001)
        assert lock.request(1, lease=60).reason == "expired"

    def test_the_last_millisecond_is_the_holders(self, lock: Bench) -> None:
        fence = lock.request(1, lease=1).fence
        lock.advance(1)
        assert isinstance(lock.request(2), Busy)
        assert isinstance(lock.renew(1, 1, fence), Renewed)


class TestFencesRise:
    def test_from_holder_to_holder(self, lock: Bench) -> None:
        fences = []
        for n in range(5):
            fences.append(lock.request(n).fence)
            lock.release(n)
        assert fences == sorted(set(fences))

    def test_over_the_loss_of_all_data(self, lock: Bench) -> None:
        before = lock.request(1).fence
        lock.flush()
        lock.advance(0.001)
        assert lock.request(2).fence > before

    def test_an_adopted_hold_has_a_new_one(self, lock: Bench) -> None:
        before = lock.request(1).fence
        assert lock.adopt(1, 2).fence > before


class TestRenewNeverShortens:
    def test_a_shorter_lease_changes_nothing(self, lock: Bench) -> None:
        fence = lock.request(1, lease=60).fence
        assert lock.renew(1, 5, fence).left == 60_000

    def test_a_late_copy_of_a_shorter_one(self, lock: Bench) -> None:
        fence = lock.request(1, lease=5).fence
        lock.renew(1, 60, fence)
        lock.advance(1)
        assert lock.renew(1, 5, fence).left == 59_000

    def test_shortening_is_a_call_of_its_own(self, lock: Bench) -> None:
        fence = lock.request(1, lease=60).fence
        assert lock.call(verbs.shorten("lock", token(1), fence, 5)).left == 5_000

    def test_it_asks_for_the_same_lease(self, lock: Bench) -> None:
        fence = lock.request(1).fence
        assert lock.renew(1, 60, fence + 1) == Ended("superseded", fence)


class TestLateCopies:
    def test_of_a_request_after_the_release(self, lock: Bench) -> None:
        fence = lock.request(1).fence
        lock.release(1)
        assert lock.request(1) == Ended("released", fence)
        assert lock.holders() == []

    def test_of_a_request_overtaken_by_its_abandon(self, lock: Bench) -> None:
        lock.abandon(1)
        assert lock.wait(1).reason == "abandoned"
        assert (lock.holders(), lock.waiters()) == ([], 0)

    def test_of_a_release_meet_nobody_else(self, lock: Bench) -> None:
        fence = lock.request(1).fence
        lock.release(1, fence)
        lock.request(2)
        assert lock.release(1, fence).reason == "released"
        assert lock.holders() == ["held 2"]

    def test_are_refused_for_as_long_as_ended_tokens_are_remembered(self, lock: Bench) -> None:
        lock.request(1)
        lock.release(1, resent=True)
        lock.advance(60)
        assert lock.request(1).reason == "released"
        lock.advance(0.001)
        assert isinstance(lock.request(1), Granted)

    def test_after_a_loss_the_holder_is_told(self, lock: Bench) -> None:
        fence = lock.request(1).fence
        lock.flush()
        lock.advance(0.001)
        again = lock.request(1)  # a copy that was still under way
        assert lock.renew(1, 60, fence) == Ended("superseded", again.fence)

    def test_many_others_end_and_it_is_still_remembered(self, lock: Bench) -> None:
        lock.request(1)
        lock.release(1, resent=True)
        for n in range(2, 200):
            lock.request(n)
            lock.release(n)
        assert lock.request(1).reason == "released"


class TestAdoption:
    def test_the_new_token_holds_and_the_old_has_ended(self, lock: Bench) -> None:
        lock.request(1, lease=5)
        assert lock.adopt(1, 2, lease=60).left == 60_000
        assert lock.release(1).reason == "adopted"
        assert lock.release(2).reason == "released"

    def test_twice_is_once(self, lock: Bench) -> None:
        lock.request(1)
        assert lock.adopt(1, 2) == lock.adopt(1, 2)

    def test_by_two_only_the_first_has_it(self, lock: Bench) -> None:
        lock.request(1)
        lock.adopt(1, 2)
        assert lock.adopt(1, 3).reason == "adopted"
        assert lock.release(2).reason == "released"

    def test_of_an_expired_hold_fails(self, lock: Bench) -> None:
        lock.request(1, lease=1)
        lock.advance(2)
        assert lock.adopt(1, 2).reason == "expired"
        assert lock.holders() == []
