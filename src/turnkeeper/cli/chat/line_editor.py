"""The line editor of a terminal, by prompt_toolkit: it stays at the bottom while answers are printed above it."""

import os
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import anyio
from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.containers import AnyContainer
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar
from rich.console import Console

from turnkeeper.cli.chat.above import Above, PromptRegion
from turnkeeper.cli.chat.completion import Candidate
from turnkeeper.cli.chat.history import TypedLines
from turnkeeper.cli.chat.keys import Key, hints, meaning
from turnkeeper.cli.chat.typing_place import Desk
from turnkeeper.cli.feed import Display
from turnkeeper.cli.output import asked
from turnkeeper.cli.screen import Screen, cells, shortened
from turnkeeper.cli.terminal import PROMPT_MARK, Terminal

MENU_LINES = 8
PAUSE_S = 1.0
"""Pause in typing after which a question is shown."""
PAUSE_MAX_S = 15.0
"""Maximum time for which a question waits for the pause."""
STYLE = Style.from_dict(
    {
        "mark": "bold ansicyan",
        "status": "ansibrightblack",
        "completion-menu": "noreverse bg:default fg:default",
        "completion-menu.completion": "noreverse bg:default fg:default",
        "completion-menu.completion.current": "noreverse bold ansicyan bg:default",
        "completion-menu.meta.completion": "noreverse bg:default ansibrightblack",
        "completion-menu.meta.completion.current": "noreverse bg:default ansibrightblack",
        "scrollbar.background": "bg:default",
        "scrollbar.button": "bg:ansibrightblack",
    }
)
"""Colours of the terminal's own palette, readable on a light and a dark background."""


class LineEditor:
    """Reads prompts, with history and completion. ``input`` and ``output`` are by default those of the process."""

    def __init__(self, history: TypedLines, *, input: Input | None = None, output: Output | None = None) -> None:
        self._desk: Desk | None = None
        self._written = anyio.Event()
        self._above = Above(self._wrote)
        self._console = Console(file=self._above, force_terminal=True, highlight=False)
        self._region = PromptRegion(self._console, self._redraw)
        self._lock = anyio.Lock()
        self._completer = _Completer(self)
        self._buffer = Buffer(
            name="prompt",
            multiline=True,
            history=_History(history),
            completer=self._completer,
            complete_while_typing=True,
            on_text_changed=self._changed,
        )
        self._typed_at = 0.0
        self._app: Application[None] = Application(
            layout=self._layout(),
            key_bindings=self._keys(),
            style=STYLE,
            input=input,
            output=output or _output(),
            before_render=self._shrink,
        )
        self._app.ttimeoutlen = 0.1  # Escape alone closes a menu, so the wait for a sequence is short.

    @property
    def desk(self) -> Desk:
        """The chat, while the editor runs."""
        assert self._desk is not None, "the line editor does not run"
        return self._desk

    # Interface of the chat (``TypingPlace``).

    def display(self, *, thinking: bool) -> Display:
        """A display that prints above the prompt, and draws unfinished parts directly above it."""
        return Terminal(self._console, Screen.of(sys.stdout), thinking=thinking, region=self._region)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Remove the prompt from the screen for a block, and restore it with the typed text."""
        async with self._lock, in_terminal():
            self._above.release()
            try:
                yield
            finally:
                self._above.release()

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Exclusive use of the terminal after a pause in typing, so that typed text does not become an answer."""
        until = time.monotonic() + PAUSE_MAX_S
        while self._buffer.text:
            left_s = min(until, self._typed_at + PAUSE_S) - time.monotonic()
            if left_s <= 0:
                break
            await anyio.sleep(left_s)
        async with self.alone():
            yield

    async def confirms(self, lines: Sequence[str], question: str) -> bool:
        """Ask on the terminal, which has no prompt now."""
        return await asked(lines, question)

    async def run(self, desk: Desk) -> None:
        """Read keys until ``close``, and print the output meanwhile."""
        self._desk = desk
        async with anyio.create_task_group() as group:
            group.start_soon(self._print)
            # The chat handles signals and bugs: prompt_toolkit would ask for Enter in the middle of the screen.
            await self._app.run_async(handle_sigint=False, set_exception_handler=False)
            group.cancel_scope.cancel()
        self._above.is_direct = True
        self._above.release()

    def ready(self) -> None:
        """Redraw the line below the prompt."""
        self._redraw()

    def put_back(self, text: str) -> None:
        """Put a text into an empty prompt."""
        if not self._buffer.text:
            self._buffer.document = Document(text)

    def close(self) -> None:
        """End the editor; the prompt is removed from the screen."""
        if self._app.is_running and not self._app.is_done:
            self._app.erase_when_done = True
            self._app.exit()

    def _changed(self, buffer: Buffer) -> None:
        self._typed_at = time.monotonic()

    # Output.

    def _wrote(self) -> None:
        self._written.set()

    async def _print(self) -> None:
        while True:
            await self._written.wait()
            self._written = anyio.Event()
            async with self._lock:
                # Not `in_terminal`: a terminal that reads lines, if only for a moment, takes Ctrl-D itself.
                self._app.renderer.erase(leave_alternate_screen=False)
                self._above.release()
                self._redraw()

    def _redraw(self) -> None:
        self._app.invalidate()

    def _shrink(self, app: Application[None]) -> None:
        """Erase the last drawing if fewer lines are needed now, because prompt_toolkit never releases lines."""
        drawn, size = app.renderer.last_rendered_screen, app.output.get_size()
        if drawn is not None and not app.is_done:
            needed = app.layout.container.preferred_height(size.columns, size.rows).preferred
            if needed < drawn.height:
                app.renderer.erase(leave_alternate_screen=False)

    # Layout.

    def _layout(self) -> Layout:
        search = SearchToolbar()
        control = BufferControl(self._buffer, search_buffer_control=search.control)
        region = Window(FormattedTextControl(lambda: self._region.text), dont_extend_height=True)
        prompt = Window(control, wrap_lines=True, dont_extend_height=True, get_line_prefix=_prefix)
        rows: list[AnyContainer] = [
            ConditionalContainer(region, Condition(lambda: bool(self._region.rows))),
            Window(height=1),
            prompt,
            CompletionsMenu(max_height=MENU_LINES, scroll_offset=1),
            search,
            Window(FormattedTextControl(self._status), height=1, style="class:status"),
        ]
        return Layout(HSplit(rows), prompt)

    def _status(self) -> AnyFormattedText:
        """The line below the prompt: status and keys; on a narrow terminal without the keys."""
        if self._desk is None:
            return ""
        width, status, keys = self._app.output.get_size().columns, self._desk.status, hints(self._desk.state)
        if self._desk.state != "idle":  # The keys are more important then.
            status, keys = keys, status
        gap = width - cells(status) - cells(keys) - 1
        return f"{status}{' ' * gap}{keys}" if gap >= 2 else shortened(status, width - 1)

    # Keys.

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        here = has_focus(self._buffer)

        @keys.add("enter", filter=here)
        def _enter(event: KeyPressEvent) -> None:
            state = self._buffer.complete_state
            if state is not None and state.current_completion is not None:
                self._buffer.complete_state = None  # Keeps the chosen completion.
            else:
                self._pressed("enter")

        @keys.add("escape", "enter", filter=here)
        def _new_line(event: KeyPressEvent) -> None:
            self._buffer.newline(copy_margin=False)

        @keys.add("tab", filter=here)
        def _complete(event: KeyPressEvent) -> None:
            self._complete()

        @keys.add("c-o", filter=here)
        def _queue(event: KeyPressEvent) -> None:
            self._pressed("ctrl-o")

        @keys.add("c-c")
        def _stop(event: KeyPressEvent) -> None:
            if not event.app.layout.has_focus(self._buffer):
                event.key_processor.feed(KeyPress(Keys.ControlG))  # Ends a search.
            else:
                self._pressed("ctrl-c")

        @keys.add("c-d", filter=here)
        def _leave(event: KeyPressEvent) -> None:
            self._pressed("ctrl-d")

        @keys.add("c-z")
        def _suspend(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        return keys

    def _complete(self) -> None:
        """Choose the next completion. Known completions are shown at once, so that later keys come after them."""
        state = self._buffer.complete_state
        if state is None or not state.completions:
            found = self._completer.now(self._buffer.document)
            if not found:
                self._buffer.start_completion(insert_common_part=True)
                return
            state = self._buffer.complete_state = CompletionState(self._buffer.document, found)
        if len(state.completions) == 1:
            self._buffer.apply_completion(state.completions[0])  # No choice is open, so Enter sends.
        else:
            self._buffer.complete_next()

    def _pressed(self, key: Key) -> None:
        text = self._buffer.text
        match means := meaning(key, self.desk.state, has_text=bool(text.strip())):
            case "nothing":
                return
            case "clear":
                self._buffer.reset()
            case "delete":
                self._buffer.delete()
            case "send" | "steer" | "queue":
                self._buffer.reset(append_to_history=True)
                self.desk.heard(means, _valid(text))
            case _:
                self.desk.heard(means, "")


class _Completer(Completer):
    """Completions of the chat. Listing files waits, so only the asynchronous method gives completions."""

    def __init__(self, editor: LineEditor) -> None:
        self._editor = editor

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """No completions: see ``get_completions_async``."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """The completions of the text before the cursor."""
        for one in await self._editor.desk.complete(document.text_before_cursor):
            yield _completion(one)

    def now(self, document: Document) -> list[Completion]:
        """The completions that are known without waiting."""
        return [_completion(one) for one in self._editor.desk.complete_now(document.text_before_cursor)]


def _completion(candidate: Candidate) -> Completion:
    return Completion(candidate.text, start_position=candidate.start, display_meta=candidate.about)


class _History(History):
    """The history of the arrow keys, in a file."""

    def __init__(self, lines: TypedLines) -> None:
        super().__init__()
        self._lines = lines

    def load_history_strings(self) -> Iterable[str]:
        """The entries, newest first."""
        return reversed(self._lines.load())

    def store_string(self, string: str) -> None:
        """Add an entry."""
        self._lines.add(_valid(string))


def _prefix(line: int, wrapped: int) -> AnyFormattedText:
    return [("class:mark", f"{PROMPT_MARK} ")] if line == 0 and wrapped == 0 else "  "


def _valid(text: str) -> str:
    """A text that can be stored: bytes that are not UTF-8 were typed as lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _output() -> Output:
    """The terminal, without requests for the cursor position: a late response would look like typed text."""

    def size() -> Size:
        try:
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            columns, rows = 0, 0
        return Size(rows=rows or 24, columns=columns or 80)

    return Vt100_Output(sys.stdout, size, term=os.environ.get("TERM"), enable_cpr=False)
