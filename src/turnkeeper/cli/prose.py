"""Markdown for a terminal, drawn the same by the display of a run and by the full screen."""

from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.theme import Theme

from turnkeeper.cli.screen import harmless

WIDTH_MAX: Final = 100

STYLES: Final = Theme(
    {
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.h1": "bold",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
    }
)
"""The colours of the terminal, without background colours."""


class Prose:
    """Rendered Markdown, without the empty lines that rich adds around lists and code."""

    def __init__(self, text: str) -> None:
        self._text = harmless(text.strip("\n"))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        body = _Markdown(self._text, code_theme="ansi_dark", hyperlinks=False)
        # Without a height: empty lines that are trimmed below must not push out the last ones.
        narrow = options.update(width=min(options.max_width, WIDTH_MAX), height=None)
        with console.use_theme(STYLES):
            lines = [_trimmed(line) for line in console.render_lines(body, narrow, pad=False)]
        shown = [place for place, line in enumerate(lines) if line]
        for line in lines[shown[0] : shown[-1] + 1] if shown else []:
            yield from line
            yield Segment.line()


class _Code(CodeBlock):
    """A code block without empty lines around it: the paragraphs next to it have theirs."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, padding=(0, 1))


class _Markdown(Markdown):
    elements = {**Markdown.elements, "fence": _Code, "code_block": _Code}


def _trimmed(line: list[Segment]) -> list[Segment]:
    """A line without spaces at its end."""
    while line and not line[-1].text.strip():
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else line
