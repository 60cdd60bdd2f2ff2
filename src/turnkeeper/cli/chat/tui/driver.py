"""The driver of the terminal, which outlives the loss of the terminal."""

from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from textual.app import App


class HangupDriver(LinuxDriver):
    """Writes to the terminal as long as there is one.

    textual writes in a thread that an error ends. Nobody empties its bounded queue then, and the program would wait for
    ever at a later write.
    """

    def __init__(
        self, app: "App[Any]", *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        if self._file is not None:
            self._file = cast("TextIOWrapper", UntilHangup(self._file))


class UntilHangup:
    """Standard error stream that drops output after the terminal is lost."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with suppress(OSError):
            return self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()
