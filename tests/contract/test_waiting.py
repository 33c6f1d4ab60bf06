"""What a waiter may rely on."""

from __future__ import annotations

import pytest

from django_latch.core import verbs
from django_latch.core.replies import Busy, Ended, Full, Granted, Queued
from tests.contract.bench import Bench, token


class TestFirstComeFirstServed:
    def test_in_the_order_of_arrival(self, lock: Bench) -> None:
        lock.request(0)
        waiting = list(range(1, 6))
        assert [lock.wait(n).ahead for n in waiting] == [0, 1, 2, 3, 4]
        for n in waiting:
            lock.release(n - 1)
            still = [m for m in reversed(waiting) if m >= n]
            assert [m for m in still if isinstance(lock.wait(m), Granted)] == [n]

    def test_a_place_is_kept_however_often_it_is_asked_for(self, lock: Bench) -> None:
        lock.request(0)
        first, _ = lock.wait(1), lock.wait(2)
        lock.advance(2)
        again = lock.wait(1)
        assert (again.ticket, again.ahead) == (first.ticket, 0)

    def test_who_was_thought_dead_comes_back_to_the_old_place(self, lock: Bench) -> None:
        lock.request(0, lease=60)
        ticket = lock.wait(1).ticket
        lock.advance(3.001)
        assert lock.wait(2).ahead == 0
        back = lock.wait(1)
        assert (back.ticket, back.ahead) == (ticket, 0)
        assert lock.wait(2).ahead == 1

    def test_the_queue_is_rebuilt_after_the_loss_of_all_data(self, lock: Bench) -> None:
        lock.request(0)
        tickets = {n: lock.wait(n).ticket for n in (1, 2)}
        lock.flush()
        lock.advance(0.001)
        lock.request(3)  # the free lock goes to the first who comes
        lock.wait(4)
        assert [lock.wait(n, ticket=tickets[n]).ahead for n in (2, 1)] == [0, 0]
        assert lock.wait(4).ahead == 2

    @pytest.mark.parametrize("forged", ["early", "late"])
    def test_a_ticket_cannot_be_made_up(self, lock: Bench, forged: str) -> None:
        lock.request(0)
        real = lock.wait(1).ticket
        asked = 1 if forged == "early" else real + 10**9
        answer = lock.wait(2, ticket=asked)
        assert answer.ticket not in (asked, real)
        assert answer.ahead == 1


class TestNoBarging:
    def test_a_free_permit_goes_to_who_waits(self, lock: Bench) -> None:
        lock.request(0)
        lock.wait(1)
        lock.release(0)
        assert isinstance(lock.request(2), Busy)
        assert isinstance(lock.wait(1), Granted)

    def test_nor_after_the_end_of_a_lease(self, lock: Bench) -> None:
        lock.request(0, lease=1)
        lock.wait(1)
        lock.advance(1.001)
        assert isinstance(lock.request(2), Busy)
        assert lock.holders() == ["offered 1"]

    def test_nor_by_asking_for_less(self, lock: Bench) -> None:
        lock.request(0, limit=2)
        lock.wait(1, limit=1)
        assert isinstance(lock.request(2, limit=2), Busy)


class TestPermitsFit:
    def test_as_many_as_the_limit(self, lock: Bench) -> None:
        assert [isinstance(lock.request(n, limit=3), Granted) for n in range(4)] == [
            True,
            True,
            True,
            False,
        ]

    def test_an_exclusive_holder_is_alone(self, lock: Bench) -> None:
        lock.request(0, limit=1)
        assert isinstance(lock.request(1, limit=3), Busy)

    def test_an_exclusive_caller_waits_for_all_to_leave(self, lock: Bench) -> None:
        lock.request(0, limit=2)
        lock.request(1, limit=2)
        assert isinstance(lock.wait(2, limit=1), Queued)
        lock.release(0)
        assert isinstance(lock.wait(2, limit=1), Queued)
        lock.release(1)
        assert isinstance(lock.wait(2, limit=1), Granted)

    def test_each_has_an_end_of_its_own(self, lock: Bench) -> None:
        lock.request(0, limit=2, lease=1)
        lock.request(1, limit=2, lease=60)
        lock.advance(1.001)
        assert lock.holders() == ["held 1"]
        assert isinstance(lock.request(2, limit=2), Granted)


class TestQueueLimit:
    def test_one_more_is_refused(self, lock: Bench) -> None:
        lock.request(0)
        answers = [lock.wait(n, max_waiters=2) for n in (1, 2, 3)]
        assert [type(answer) for answer in answers] == [Queued, Queued, Full]
        assert lock.waiters() == 2

    def test_none_may_wait(self, lock: Bench) -> None:
        lock.request(0)
        assert isinstance(lock.wait(1, max_waiters=0), Full)

    def test_a_try_does_not_count(self, lock: Bench) -> None:
        lock.request(0)
        lock.request(1)
        assert isinstance(lock.wait(2, max_waiters=1), Queued)

    def test_the_dead_do_not_count(self, lock: Bench) -> None:
        lock.request(0, lease=60)
        lock.wait(1, max_waiters=1)
        lock.advance(3.001)
        assert isinstance(lock.wait(2, max_waiters=1), Queued)

    def test_who_was_let_in_is_not_put_out_after_a_loss(self, lock: Bench) -> None:
        lock.request(0)
        ticket = lock.wait(1, max_waiters=1).ticket
        lock.flush()
        lock.advance(0.001)
        lock.request(2)
        lock.wait(3, max_waiters=1)
        back = lock.wait(1, max_waiters=1, ticket=ticket)
        assert (type(back), back.ahead) == (Queued, 0)


class TestHandOver:
    def test_an_offer_is_made_at_the_release(self, lock: Bench) -> None:
        lock.request(0)
        lock.wait(1)
        lock.release(0)
        assert lock.holders() == ["offered 1"]

    def test_whoever_takes_it_has_the_whole_lease(self, lock: Bench) -> None:
        lock.request(0)
        lock.wait(1, lease=7)
        lock.release(0)
        lock.advance(2.9)
        assert lock.wait(1, lease=7).left == 7_000

    def test_an_offer_nobody_takes_costs_one_claim(self, lock: Bench) -> None:
        lock.request(0)
        lock.wait(1)
        lock.wait(2)
        lock.release(0)
        lock.advance(2.5)
        assert isinstance(lock.wait(2), Queued)
        lock.advance(0.501)
        assert isinstance(lock.wait(2), Granted)

    def test_two_dead_waiters_cost_one_claim_where_the_next_is_told_of_them(
        self, lock: Bench
    ) -> None:
        lock.request(0, lease=60)
        for n in (1, 2, 3):
            lock.wait(n)
        lock.advance(2.5)
        lock.wait(3)
        lock.advance(1)  # 1 and 2 have not asked for 3 s
        lock.release(0)
        assert isinstance(lock.wait(3), Granted)

    def test_a_silent_waiter_can_be_passed_over(self, lock: Bench) -> None:
        lock.request(0)
        lock.wait(1)
        lock.wait(2)
        offered = lock.release(0).offered
        assert isinstance(lock.wait(2, silent=offered), Queued), "it is too fresh"
        lock.advance(0.02)
        assert lock.call(verbs.nudge("lock", offered)) == 1
        assert isinstance(lock.wait(2, silent=offered), Granted)

    def test_a_holder_cannot(self, lock: Bench) -> None:
        lock.request(0)
        lock.wait(1)
        lock.wait(2)
        offered = lock.release(0).offered
        fence = lock.wait(1).fence
        lock.advance(0.02)
        assert fence == offered
        assert isinstance(lock.wait(2, silent=offered), Queued)
        assert lock.holders() == ["held 1"]

    def test_cleaning_up_hands_over_too(self, lock: Bench) -> None:
        lock.request(0, lease=1)
        lock.wait(1)
        lock.advance(1.001)
        assert list(lock.call(verbs.trim("lock"))) == [1, 0]
        assert lock.holders() == ["offered 1"]

    def test_a_permit_that_must_last_is_handed_over_when_it_has(self, lock: Bench) -> None:
        lock.request(0, min_hold=5)
        lock.wait(1)
        lock.release(0)
        assert lock.holders() == ["cooling 0"]
        assert isinstance(lock.wait(1), Queued)
        lock.advance(5.001)
        assert isinstance(lock.wait(1), Granted)


class TestTakeOver:
    """A waiter that lives is served, however many before it die."""

    STEP = 0.25

    def until_served(self, lock: Bench, n: int, others: list[int]) -> float:
        """Seconds until `n`, which polls all the time, is granted.

        The others poll as well, and die in the moment they are offered the lock.
        """
        spent, alive = 0.0, set(others)
        while not isinstance(lock.wait(n), Granted):
            assert spent < 60, "never served"
            alive -= {other for other in alive if f"offered {other}" in lock.holders()}
            for other in sorted(alive):
                lock.wait(other)
            lock.advance(self.STEP)
            spent += self.STEP
        return spent

    @pytest.mark.parametrize("deaths", [0, 1, 2, 4])
    def test_each_death_at_an_offer_costs_one_claim(self, lock: Bench, deaths: int) -> None:
        lock.request(0, lease=5)
        others = list(range(1, deaths + 1))
        for n in [*others, 99]:
            lock.wait(n)
        spent = self.until_served(lock, 99, others)
        assert 5 + 3 * deaths < spent <= 5 + (3 + self.STEP) * deaths + self.STEP

    def test_many_deaths_at_once_cost_one_claim(self, lock: Bench) -> None:
        lock.request(0, lease=60)
        for n in [*range(1, 21), 99]:
            lock.wait(n)
        lock.release(0)
        assert 3 < self.until_served(lock, 99, []) <= 3 + self.STEP


class TestAbandon:
    def test_the_next_one_moves_up(self, lock: Bench) -> None:
        lock.request(0)
        lock.wait(1)
        assert lock.wait(2).ahead == 1
        lock.abandon(1)
        assert lock.wait(2).ahead == 0

    def test_an_offer_goes_to_the_next(self, lock: Bench) -> None:
        lock.request(0)
        lock.wait(1)
        lock.wait(2)
        lock.release(0)
        lock.abandon(1)
        assert lock.holders() == ["offered 2"]

    def test_it_cannot_be_undone(self, lock: Bench) -> None:
        lock.request(0)
        ticket = lock.wait(1).ticket
        lock.abandon(1)
        assert lock.wait(1, ticket=ticket) == Ended("abandoned", 0)

    def test_it_frees_a_grant_that_nobody_heard_of(self, lock: Bench) -> None:
        lock.request(1)
        lock.abandon(1)
        assert lock.holders() == []


class TestFinishedJobs:
    def test_another_copy_of_the_message_gets_nothing(self, lock: Bench) -> None:
        lock.request(1, job="j")
        lock.release(1, job="j", keep_job_for=60)
        assert lock.request(2, job="j").reason == "finished"
        assert isinstance(lock.request(3, job="k"), Granted)

    def test_nor_does_one_that_waited(self, lock: Bench) -> None:
        lock.request(1, job="j")
        lock.wait(2, job="j")
        lock.release(1, job="j", keep_job_for=60)
        assert lock.wait(2, job="j").reason == "finished"
        assert lock.holders() == []

    def test_nor_one_that_was_thought_dead(self, lock: Bench) -> None:
        lock.request(1, job="j", lease=60)
        lock.wait(2, job="j")
        lock.advance(3.001)
        lock.release(1, job="j", keep_job_for=60)
        assert lock.wait(2, job="j").reason == "finished"
        assert lock.holders() == []

    def test_it_is_remembered_for_as_long_as_was_asked(self, lock: Bench) -> None:
        lock.request(1, job="j")
        lock.release(1, job="j", keep_job_for=5)
        lock.request(2, job="k")
        lock.release(2, job="k", keep_job_for=60)
        lock.advance(5.001)
        assert isinstance(lock.request(3, job="j"), Granted)


class TestSeveralAtOnce:
    def test_all_or_none(self, lock: Bench) -> None:
        ask = verbs.Ask(name="a", ttl=30, owner="{}")
        lock.request(1, name="b")
        assert lock.call(verbs.many(ask, ["a", "b"], [token(2), token(3)])) == "b"
        assert lock.holders("a") == []
        lock.call(verbs.end("b", token(1), "released"))
        left, fences = lock.call(verbs.many(ask, ["a", "b"], [token(4), token(5)]))
        assert (left, len(fences)) == (30_000, 2)
        assert lock.call(verbs.many(ask, ["a", "b"], [token(4), token(5)])) == (left, fences)

    def test_a_token_that_is_forgotten_gets_them(self, lock: Bench) -> None:
        lock.request(1, name="a", lease=1)
        lock.advance(2)
        lock.request(2, name="a", lease=300)
        lock.advance(61)
        lock.call(verbs.end("a", token(2), "released"))
        ask = verbs.Ask(name="a", ttl=30, owner="{}")
        left, fences = lock.call(verbs.many(ask, ["a", "b"], [token(1), token(3)]))
        assert (left, len(fences)) == (30_000, 2)
