"""Runs the flows of core.flow against a store."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, TypeVar, cast

from django_latch.core.calls import Call, Glance, Park, Watch, Work
from django_latch.core.flow import Flow
from django_latch.store.base import AsyncSnapshots, AsyncStore, Store

T = TypeVar("T")


def sync(flow: Flow[T], store: Store) -> T:
    """Run a flow to its end; whatever interrupts a step is the flow's to settle."""
    try:
        step = next(flow)
        while True:
            try:
                reply = store.call(step) if isinstance(step, Call) else _other(step, store)
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
                reply = await (store.call(step) if isinstance(step, Call) else _aother(step, store))
            except BaseException as error:  # noqa: BLE001  the flow raises it again
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        flow.close()  # interrupted in here, and not in a step: a traceback would keep it waiting


def _other(step: Park[Any] | Glance | Watch | Work, store: Store) -> Any:
    """A step that is no call."""
    if isinstance(step, Glance):
        return store.glance(step)
    if isinstance(step, Work):
        return step.run()
    return store.park(step) if isinstance(step, Park) else store.watch(step)


async def _aother(step: Park[Any] | Glance | Watch | Work, store: AsyncStore) -> Any:
    """The same in an event loop."""
    if isinstance(step, Work):
        result = await asyncio.to_thread(step.run) if step.blocks else step.run()
        return await result if inspect.isawaitable(result) else result
    if isinstance(step, Park):
        return await store.park(step)
    snapshots = cast(AsyncSnapshots, store)
    return await (snapshots.glance(step) if isinstance(step, Glance) else snapshots.watch(step))
