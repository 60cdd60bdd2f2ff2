"""Lines of the text log: one record cannot pass for several."""

import errno
import logging
import os
import sys

from turnkeeper.server.logs import NoRoomFilter, TextFormatter


def record(message: str, error: BaseException | None = None) -> logging.LogRecord:
    caught = (type(error), error, error.__traceback__) if error is not None else None
    return logging.LogRecord("turnkeeper.access", logging.INFO, __file__, 1, "%s", (message,), caught)


def test_control_characters_of_a_message_are_escaped() -> None:
    line = TextFormatter().format(record("GET /a\nERROR b\r\x1b[31m\x9b1m\u2028 404 é"))
    assert line == r"INFO turnkeeper.access: GET /a\nERROR b\r\x1b[31m\x9b1m\u2028 404 é"


def test_lines_of_a_traceback_are_indented_and_escaped() -> None:
    try:
        raise ValueError("bad\nERROR forged \x1b[31m")
    except ValueError:
        first, *others = TextFormatter().format(record("err_1", sys.exception())).split("\n")
    assert first == "INFO turnkeeper.access: err_1"
    assert all(line.startswith("  ") for line in others)
    assert others[-1] == r"  ERROR forged \x1b[31m"


def test_that_no_connection_can_be_accepted_is_told_once_a_minute_and_in_a_line() -> None:
    room, format = NoRoomFilter(), TextFormatter().format

    def told(at: float, message: str) -> list[str]:
        error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        record = logging.LogRecord("asyncio", logging.ERROR, __file__, 1, message, (), (OSError, error, None))
        record.created = at
        return [format(record)] if room.filter(record) else []

    accept = "socket.accept() out of system resource\nsocket: <asyncio.TransportSocket fd=6>"
    said = "connections wait to be accepted: Too many open files; close clients, or raise the limit (`ulimit -n`)"
    line = f"ERROR asyncio: {said}"
    assert [told(at, accept) for at in (100, 100.1, 159.9, 160)] == [[line], [], [], [line]]
    assert told(161, "something else")[0].startswith("ERROR asyncio: something else\n")
