"""Texts of a page: markdown and plain text as HTML in which nothing runs, loads or leaves its place."""

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any, Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

MARKDOWN_CHARS_MAX: Final = 100_000
"""A longer text is shown as it is: the time that markdown takes may grow with the square of its length."""
LINE_CHARS_MAX: Final = 20_000
NESTING_MAX: Final = 24

_TERMINAL: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[PX^_][^\x1b]{0,4096}(?:\x1b\\)?|[@-_])"
)
"""Escape sequences of terminals: colours, titles, cursor movements."""
_UNSHOWN: Final = {
    **{code: 0xFFFD for code in range(32) if chr(code) not in "\n\t\r"},
    **dict.fromkeys([0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF], 0xFFFD),
}
"""Characters that cannot be seen or that turn the direction of a text, with a visible mark in their place."""
_LINK: Final = re.compile(r"https?://|mailto:", re.I)
_NAMED_HOST: Final = re.compile(r"\s*(?:https?://)?((?:[^\W_]|-)+(?:\.(?:[^\W_]|-)+)+)", re.I)
"""The host that the text of a link begins with."""


def markdown(text: str) -> str:
    """Markdown as HTML. HTML in it is shown as text, pictures become links, and links lead to web addresses only."""
    shown = seen(text)
    if len(shown) > MARKDOWN_CHARS_MAX or any(len(line) > LINE_CHARS_MAX for line in shown.split("\n")):
        return plain(shown)
    try:
        return str(_parser().render(shown))
    except (RecursionError, ValueError, IndexError):  # A text that the parser cannot cope with is still a text.
        return plain(shown)


def plain(text: str) -> str:
    """A text as it is."""
    return f"<pre>{escape(seen(text))}</pre>"


def typed(text: str) -> str:
    """A text with its line breaks, as it was typed."""
    return f'<div class="typed">{escape(seen(text.strip()))}</div>'


def inline(text: str) -> str:
    """A text on one line."""
    return escape(" ".join(seen(text).split()))


def diff(text: str) -> str:
    """A diff with a class for each added, removed and heading line."""
    kinds = {"+": "added", "-": "removed", "@": "hunk"}
    lines = []
    for line in seen(text).split("\n"):
        kind = kinds.get(line[:1]) if not line.startswith(("+++", "---")) else "hunk"
        lines.append(f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line))
    return '<pre class="diff">' + "\n".join(lines) + "</pre>"


def seen(text: str) -> str:
    """A text without what a terminal would obey and without characters that cannot be seen."""
    return _TERMINAL.sub("", text).translate(_UNSHOWN).encode("utf-8", "replace").decode()


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": NESTING_MAX})
    parser.enable(["table", "strikethrough"])
    parser.disable(["image", "html_block", "html_inline"])
    # The parser refuses what begins with `javascript:` and the like. A list of what is allowed is shorter and safer.
    parser.validateLink = lambda url: _LINK.match(url) is not None  # type: ignore[method-assign] # Made to be replaced.
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("link_close", _link_end)
    for cell in ("th_open", "td_open"):
        parser.add_render_rule(cell, _cell)
    return parser


# The renderer gives each rule its options and its environment too, whose types are those of the library.
def _link(renderer: RendererHTML, tokens: Sequence[Token], index: int, *given: Any) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    return str(renderer.renderToken(tokens, index, *given))


def _link_end(renderer: RendererHTML, tokens: Sequence[Token], index: int, *given: Any) -> str:
    """The end of a link. Its host stands before it if the text names another one, or if it is in punycode."""
    begin = next(place for place in range(index - 1, -1, -1) if tokens[place].type == "link_open")
    host = urlsplit(str(tokens[begin].attrGet("href"))).netloc.rpartition("@")[2].lower()
    match = _NAMED_HOST.match("".join(one.content for one in tokens[begin + 1 : index]))
    named = match[1].lower() if match is not None else None
    is_other = named is not None or host.startswith("xn--") or ".xn--" in host
    return f" ({escape(host)})</a>" if host and is_other and named != host else "</a>"


def _cell(renderer: RendererHTML, tokens: Sequence[Token], index: int, *given: Any) -> str:
    tokens[index].attrs.pop("style", None)  # The policy of the page refuses styles in the text.
    return str(renderer.renderToken(tokens, index, *given))
