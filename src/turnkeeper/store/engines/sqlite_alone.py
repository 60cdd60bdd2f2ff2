"""Whether a job may be written where it was submitted: there it is done in half the time, but everybody else waits.

The event loop must not wait for a slow disk, nor for a crowd. So a job is written there only if it has the store to
itself and the disk has been quick. Several sessions at work are better off with the writer's thread: it commits what
they bring together, and meanwhile the loop goes on.
"""

import time
from collections.abc import Callable
from typing import Final

SLOW_S: Final = 0.003
"""A commit that takes longer waited for the disk."""
PAUSE_TIMES: Final = 50
"""After a second slow commit in a row none is made on the loop for so many times as long: the disk is slow, and hardly
any time may be lost to it. A single one is bad luck, which every disk brings now and then."""
CROWD_S: Final = 0.05
"""Who comes so soon after another session's job is one of several at work. For as long nobody is alone."""
ROW_MAX: Final = 50
"""After so many commits one goes to the thread, so that a loop of appends lets others run."""
BYTES_MAX: Final = 64 * 1024
"""A larger job is no small matter: a long message, a fork."""


class Alone:
    """What is known of those who wrote last, and of the disk."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._not_until, self._was_slow, self._in_a_row = 0.0, False, 0
        self._last: str | None = None
        self._last_at, self._begun = 0.0, 0.0

    def may_write(self, log: str | None, *, is_new: bool, size: int) -> bool:
        """Whether the job of this log is alone. One that begins a log (``is_new``) does not make a crowd by itself."""
        now, before, before_at = self._clock(), self._last, self._last_at
        self._last, self._last_at = log, now
        if log != before and not is_new and now < before_at + CROWD_S:
            self._not_until = max(self._not_until, now + CROWD_S)
        if now < self._not_until or size > BYTES_MAX or self._in_a_row >= ROW_MAX:
            self._in_a_row = 0
            return False
        self._in_a_row += 1
        return True

    def disturbed(self) -> None:
        """Another process is writing."""
        self._not_until = max(self._not_until, self._clock() + CROWD_S)

    def __enter__(self) -> None:
        """A commit is made on the loop, and how long it takes is noted."""
        self._begun = self._clock()

    def __exit__(self, *_: object) -> None:
        """It was made, or failed."""
        took = self._clock() - self._begun
        is_slow = took > SLOW_S
        if is_slow and self._was_slow:
            self._not_until = self._begun + took * PAUSE_TIMES
        self._was_slow = is_slow
