"""Runs the flows of core.flow against a store."""

from __future__ import annotations

from typing import TypeVar

from django_latch.core.calls import Call
from django_latch.core.flow import Flow
from django_latch.store.base import AsyncStore, Store

T = TypeVar("T")


def sync(flow: Flow[T], store: Store) -> T:
    """Run a flow to its end; whatever interrupts a step is the flow's to settle."""
    try:
        step = next(flow)
        while True:
            try:
                reply = store.call(step) if isinstance(step, Call) else store.park(step)
            except BaseException as error:  # noqa: BLE001  the flow raises it again
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        flow.close()  # interrupted in here, and not in a step: a traceback would keep it waiting


async def run(flow: Flow[T], store: AsyncStore) -> T:
    """The same in an event loop."""
    try:
        step = next(flow)
        while True:
            try:
                reply = await (store.call(step) if isinstance(step, Call) else store.park(step))
            except BaseException as error:  # noqa: BLE001  the flow raises it again
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        flow.close()  # interrupted in here, and not in a step: a traceback would keep it waiting
