"""What stands above the prompt of the line editor: printed output, and the unfinished parts of an answer."""

import io
import sys
from collections.abc import Callable

from prompt_toolkit.formatted_text import ANSI
from rich.console import Console, RenderableType

from turnkeeper.cli.terminal import Region


class Above(io.StringIO):
    """What is printed above the prompt. It is kept until the prompt is off the screen."""

    def __init__(self, wrote: Callable[[], None]) -> None:
        super().__init__()
        self._wrote = wrote
        self.is_direct = False
        """Whether there is no prompt any more."""

    def flush(self) -> None:
        """Print what was written, or ask for that."""
        if self.is_direct:
            self.release()
        elif self.tell():
            self._wrote()

    def release(self) -> None:
        """Print what was written. Characters that the encoding of the output lacks are replaced."""
        if text := self.getvalue():
            self.seek(0)
            self.truncate()
            encoding = sys.stdout.encoding or "utf-8"
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
            sys.stdout.flush()


class PromptRegion(Region):
    """Unfinished parts, drawn by the line editor above its prompt."""

    lines_below = 6

    def __init__(self, console: Console, redraw: Callable[[], None]) -> None:
        super().__init__(console)
        self._redraw_prompt = redraw
        self.rows = ""

    @property
    def text(self) -> ANSI:
        """The rows with their colours."""
        return ANSI(self.rows)

    def show(self, rows: RenderableType) -> None:
        """Draw these rows, if they are new."""
        with self._console.capture() as drawn:
            self._console.print(rows, highlight=False)
        self._become(drawn.get().rstrip("\n"))

    def clear(self) -> None:
        """Remove the rows."""
        self._become("")

    def _become(self, rows: str) -> None:
        if rows != self.rows:
            self.rows = rows
            self._redraw_prompt()
