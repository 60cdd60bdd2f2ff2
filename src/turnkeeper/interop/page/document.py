"""The document of a page: its head, an outline of the prompts, the articles, and where it was made from."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Final

from turnkeeper.interop.page.articles import Article
from turnkeeper.interop.page.texts import inline

OUTLINE_MAX: Final = 200
"""Prompts that the outline names."""


@cache
def style() -> str:
    """The style sheet."""
    return files(__package__).joinpath("page.css").read_text("utf-8")


def beginning(title: str, about: Sequence[str], *, warning: str | None = None) -> str:
    """The page up to its articles. Nothing but its own style sheet and pictures within it is loaded."""
    hashed = b64encode(sha256(style().encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; img-src data:; base-uri 'none'; form-action 'none'"
    said = f'<p class="warning">{inline(warning)}</p>' if warning else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=True)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{inline(title)}</title>\n<style>{style()}</style>\n</head>\n<body>\n<header>{said}<h1>{inline(title)}</h1>"
        f'<p class="about">{" · ".join(map(inline, filter(None, about)))}</p>'
    )


def outline(articles: Sequence[Article]) -> str:
    """Links to the prompts."""
    prompts = [one for one in articles if one.prompt]
    rows = [f'<li><a href="#{escape(one.key, quote=True)}">{inline(one.prompt or "")}</a></li>' for one in prompts]
    more = f'<p class="about">and {len(rows) - OUTLINE_MAX} more</p>' if len(rows) > OUTLINE_MAX else ""
    return f'<nav aria-label="Prompts"><ol>{"".join(rows[:OUTLINE_MAX])}</ol>{more}</nav>' if rows else ""


def page(
    title: str, about: Sequence[str], articles: Sequence[Article], footer: Sequence[str], *, warning: str | None = None
) -> Iterator[str]:
    """The whole page in pieces."""
    yield beginning(title, about, warning=warning)
    yield f"{outline(articles)}</header>\n<main>\n"
    for one in articles:
        yield f"{one.html}\n"
    yield f"</main>\n<footer>{'<br>'.join(map(inline, footer))}</footer>\n</body>\n</html>\n"
