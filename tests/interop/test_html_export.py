"""The page of a session: safe whatever the session holds, redacted unless asked otherwise, and whole in itself."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from opencode_files import imported

from turnkeeper.app import Turnkeeper
from turnkeeper.interop.page.articles import article
from turnkeeper.interop.page.texts import markdown, plain, seen

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVa\tScript:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    "![a](https://example.org/track.png)",
    "![a](javascript:alert(1))",
    "<svg onload=alert(1)><a xlink:href='javascript:1'>x</a></svg>",
    "<a href='vbscript:x'>x</a>",
    '"><script>alert(1)</script>',
    "</pre></details></article><script>alert(1)</script>",
    "```html\n</code></pre><script>alert(1)</script>\n```",
    "<style>@import 'https://example.org'</style>",
    "[x]: javascript:alert(1)\n\n[x]",
    '<https://example.org/"onmouseover=alert(1)>',
    "<javascript:alert(1)>",
    "a\x1b]0;title\x07b\x1b[31mred\x1b[0m",
    "\u202egnp.exe",
    "| a |\n|---|\n| <script>alert(1)</script> |",
    "> " * 5_000 + "deep",
    "_a" * 20_000,
    "[" * 20_000,
    "`" * 10_000,
    "<!-- x --> <![CDATA[ y ]]> <?php z ?>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<form action='https://example.org'><input name=a></form>",
    "<iframe srcdoc='<script>1</script>'></iframe>",
    "<base href='https://example.org/'>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
]
NAMES = (
    "a article b blockquote br code details div em figcaption figure h1 h2 h3 h4 h5 h6 header hr img li ol p pre s span"
    " strong summary table tbody td th thead tr ul"
)
TAGS = frozenset(NAMES.split())
ATTRIBUTES = frozenset({"class", "id", "href", "rel", "title", "src", "alt", "open", "start"})


class Reader(HTMLParser):
    """Notes every tag and attribute of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


def check(html: str) -> None:
    """Nothing in the HTML runs, loads or sends."""
    found = read(html)
    assert found.tags <= TAGS, found.tags - TAGS
    for name, value in found.attributes:
        assert name in ATTRIBUTES, name
        assert name != "href" or re.match(r"https?://|mailto:|#", value or ""), value
        assert name != "src" or (value or "").startswith("data:image/"), value


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_becomes_harmless_html(text: str) -> None:
    for html in (markdown(text), plain(text)):
        check(html)
        assert "\x1b" not in html
        assert "\u202e" not in html


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_message_becomes_a_harmless_article(text: str) -> None:
    state = {
        "status": text,
        "title": text,
        "input": {text: text},
        "output": text,
        "error": text,
        "metadata": {"diff": f"+{text}"},
        "attachments": [{"type": "file", "mime": text, "filename": text, "url": f"data:image/png;base64,{text}"}],
    }
    json = {
        "info": {"role": "assistant", "modelID": text, "error": {"name": text, "data": {"message": text}}},
        "parts": [
            {"type": "text", "text": text},
            {"type": "reasoning", "text": text},
            {"type": "tool", "tool": text, "state": state},
            {"type": "file", "mime": "image/svg+xml", "filename": text, "url": f"data:image/svg+xml,{text}"},
            {"type": "subtask", "agent": text, "description": text},
            {"type": "retry", "attempt": text, "error": {"name": text}},
            {"type": text, "text": text},
        ],
    }
    made = article(json, text)
    assert made is not None
    check(made.html)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[https://good.example/x](http://evil.example/bad)", "https://good.example/x (evil.example)"),
        ("[good.example](https://good.example@evil.example:8080/)", "good.example (evil.example:8080)"),
        ("<https://xn--pple-43d.com>", "https://\u0430pple.com (xn--pple-43d.com)"),
        ("[pay here](https://xn--pple-43d.com)", "pay here (xn--pple-43d.com)"),
        ("[**good.example**](https://GOOD.example/x)", "<strong>good.example</strong>"),
        ("[the report](https://good.example/x)", "the report"),
        ("[mail](mailto:ada@good.example)", "mail"),
    ],
)
def test_a_link_that_names_another_host_says_where_it_leads(text: str, shown: str) -> None:
    assert re.sub(r"</?(?:p|a)\b[^>]*>", "", markdown(text)).strip() == shown


def test_the_outline_says_that_a_prompt_is_longer() -> None:
    made = article({"info": {"role": "user"}, "parts": [{"type": "text", "text": "tide " * 40}]}, "message-1")
    assert made is not None
    assert made.prompt == "tide " * 15 + "tide…"


def test_an_answer_that_is_cut_off_says_so() -> None:
    said = {"type": "text", "text": "The wind tur"}
    made = [
        article({"info": {"role": "assistant", "finish": one}, "parts": [said]}, "message-1")
        for one in ("length", "stop")
    ]
    assert ["Cut off" in one.html for one in made if one is not None] == [True, False]


def test_what_a_terminal_obeys_is_not_seen() -> None:
    assert seen("a\x1b]0;title\x07b\x1b[31mred\x1b[0m\x00\u202ec") == "abred\ufffd\ufffdc"


async def page(tk: Turnkeeper, session_id: str, *, redact: bool = True) -> str:
    return b"".join([piece async for piece in tk.export_html(session_id, redact=redact)]).decode()


async def a_session(tk: Turnkeeper, tmp_path: Path) -> str:
    info = {
        "id": "ses_page", "slug": "calm-otter", "projectID": "global", "directory": str(tmp_path), "version": "1",
        "title": "Tide <tables>", "time": {"created": 1, "updated": 1},
    }  # fmt: skip
    place = {"sessionID": "ses_page", "messageID": "msg_1"}
    user = {"id": "msg_1", "sessionID": "ses_page", "role": "user", "time": {"created": 1}, "agent": "build",
            "model": {"providerID": "p", "modelID": "m"}}  # fmt: skip
    parts = [{"id": "prt_1", "type": "text", "text": f"**the** token {TOKEN}\n  indented", **place}]
    await imported(tk, tmp_path, {"info": info, "messages": [{"info": user, "parts": parts}]})
    return "ses_page"


async def test_a_page_is_whole_in_itself_and_redacted(tk: Turnkeeper, tmp_path: Path) -> None:
    html = await page(tk, await a_session(tk, tmp_path))
    found = read(html)
    assert "script" not in found.tags
    assert not [value for name, value in found.attributes if name in ("src", "action", "srcset")]
    assert "default-src &#x27;none&#x27;" in html
    assert "<h1>Tide &lt;tables&gt;</h1>" in html
    assert "**the** token [api-key 1]\n  indented" in html
    assert TOKEN not in html
    assert "Not redacted" not in html


async def test_a_raw_page_says_so_first(tk: Turnkeeper, tmp_path: Path) -> None:
    html = await page(tk, await a_session(tk, tmp_path), redact=False)
    assert TOKEN in html
    assert html.index("Not redacted") < html.index("<h1>")


async def test_the_log_is_not_touched_by_a_redaction(tk: Turnkeeper, tmp_path: Path) -> None:
    session_id = await a_session(tk, tmp_path)
    before = await tk.store.engine.read(session_id)
    await page(tk, session_id)
    await tk.redactions(session_id)
    redacted = b"".join([piece async for piece in tk.export(session_id, redact=True)]).decode()
    assert TOKEN not in redacted
    assert "[api-key 1]" in redacted
    assert await tk.store.engine.read(session_id) == before
