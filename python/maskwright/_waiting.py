"""Waiting for a compilation in an event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._maskwright import CompiledConstraint, Future


async def wait(future: Future) -> CompiledConstraint:
    """Waits for a compilation without blocking the loop. Canceling the task cancels the compilation."""
    if not future.done():
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        def done(_: Future) -> None:
            # Called on the thread that compiles. The loop may be closed by then, and then nothing waits.
            if not loop.is_closed():
                loop.call_soon_threadsafe(wake)

        future.add_done_callback(done)
        try:
            await waiter
        except asyncio.CancelledError:
            future.cancel()
            raise
    return future.result(0)
