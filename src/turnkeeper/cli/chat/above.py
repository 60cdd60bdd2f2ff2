"""Output above the prompt of the line editor: printed text, and the unfinished parts of an answer."""

import io
import sys
from collections.abc import Callable

from prompt_toolkit.formatted_text import ANSI
from rich.console import Console, RenderableType

from turnkeeper.cli.terminal import Region


class Above(io.StringIO):
    """Buffer for text that is printed above the prompt. It is kept until the prompt is off the screen."""

    def __init__(self, wrote: Callable[[], None]) -> None:
        super().__init__()
        self._wrote = wrote
        self.is_direct = False
        """Whether text is printed at once: the editor has ended and there is no prompt."""

    def flush(self) -> None:
        """Print the buffer if there is no prompt, else request that it is printed."""
        if self.is_direct:
            self.release()
        elif self.tell():
            self._wrote()

    def release(self) -> None:
        """Print and empty the buffer. Characters that the encoding of the output lacks are replaced."""
        if text := self.getvalue():
            self.seek(0)
            self.truncate()
            encoding = sys.stdout.encoding or "utf-8"
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
            sys.stdout.flush()


class PromptRegion(Region):
    """Region of unfinished parts, which the line editor draws above its prompt."""

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
