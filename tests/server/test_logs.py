"""Lines of the text log: one record cannot pass for several."""

import logging
import sys

from turnkeeper.server.logs import TextFormatter


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
