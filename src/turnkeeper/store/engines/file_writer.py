"""The one thread of a files engine that writes: what comes while it is busy is written together, with one flush."""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from turnkeeper.store.engine import EngineError
from turnkeeper.store.engines.file_tree import Plan, Tree, unavailable

GROUP_MAX = 256


class Writer:
    """Takes plans in the order they come. It belongs to no task, so cancelling one that waits harms no other."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._waiting: deque[Plan] = deque()
        self._thread = ThreadPoolExecutor(1, "files-writer")

    async def write(self, plan: Plan) -> None:
        """Return once a plan is durable, or raise why it was refused. If cancelled, it is done whole or not at all."""
        self._waiting.append(plan)
        self._thread.submit(self._write_waiting)
        # Cancelling this wait cancels a plan that has not been begun, and leaves alone one that has.
        await asyncio.wrap_future(plan.done)

    async def aclose(self) -> None:
        """Return once everything that was taken is written, and the journal is empty if the disk allows it."""
        last = self._thread.submit(self._tree.checkpoint)
        self._thread.shutdown(wait=False)
        # Should it fail: everything acknowledged is in the journal, and the next to open finds it there.
        with suppress(OSError, EngineError):
            await asyncio.wrap_future(last)

    def _write_waiting(self) -> None:
        plans: list[Plan] = []
        while self._waiting and len(plans) < GROUP_MAX:
            plan = self._waiting.popleft()
            if plan.done.set_running_or_notify_cancel():
                plans.append(plan)
        if not plans:
            return
        try:
            self._tree.commit(plans)
        except Exception as error:  # Somebody waits for each of them, and must get an answer whatever it is.
            answer = unavailable(error) if isinstance(error, OSError | EngineError) else error
            for plan in plans:
                if not plan.done.done():
                    plan.done.set_exception(answer)
