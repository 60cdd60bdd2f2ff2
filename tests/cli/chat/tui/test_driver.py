"""What becomes of output when the terminal is gone."""

import os
from contextlib import suppress
from typing import IO, cast

from textual.drivers._writer_thread import WriterThread

from turnkeeper.cli.chat.tui.driver import UntilHangup


def test_output_to_a_terminal_that_is_gone_is_dropped_and_waits_for_nothing() -> None:
    terminal, program = os.openpty()
    os.close(terminal)
    with suppress(OSError), open(program, "w", buffering=1) as lost:
        thread = WriterThread(cast("IO[str]", UntilHangup(lost)))
        thread.start()
        for number in range(100):  # More than its queue holds.
            thread.write(f"line {number}\n")
        thread.stop()
        assert not thread.is_alive()
