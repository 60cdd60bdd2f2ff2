"""Stores with histories that no model would write: hostile ones, and very long ones."""

from pathlib import Path

import anyio

import turnkeeper
from turnkeeper.model import event as e
from turnkeeper.model.message import AssistantTime
from turnkeeper.model.todo import Todo
from turnkeeper.testing.builders import NOW, a_call, a_text, a_user, an_assistant, completed

CANARY = "window.canary = (window.canary ?? 0) + 1"

HOSTILE = (
    f"<script>{CANARY}</script>",
    f'<img src=x onerror="{CANARY}">',
    f"<svg onload='{CANARY}'><script>{CANARY}</script></svg>",
    f"[link](javascript:{CANARY.replace(' ', '%20')})",
    "[link](JaVaScRiPt:alert(1)) [data](data:text/html,<script>1</script>) <javascript:alert(1)>",
    "![tracker](http://192.0.2.1/pixel.png) ![svg](data:image/svg+xml;base64,PHN2Zy8+)",
    f'<iframe srcdoc="<script>{CANARY}</script>"></iframe><object data="x"></object><embed src="x">',
    f"<math><mtext><table><mglyph><style><img src=x onerror='{CANARY}'></style></mglyph></table></mtext></math>",
    '<form action="http://192.0.2.1/"><input name="attributes"><button formaction="javascript:1">go</button></form>',
    "<style>body { display: none }</style><link rel=stylesheet href=http://192.0.2.1/a.css><base href=http://192.0.2.1/>",
    "```html\n<script>window.canary = 1</script>\n```",
    '```"><script>window.canary=1</script>\ncode\n```',
    "_a" * 50_000,
    ">" * 20_000,
    "[" * 20_000,
    "a" * 3_000_000,
    "line\n" * 200_000,
    "\u202egnp.exe\u202c \u200b\u200e\ufeff \x00\x07 \ufffd \U0001f600\u0301",
    "\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m \x1b]8;;http://192.0.2.1\x07click\x1b]8;;\x07",
    "| a | b |\n|---|---|\n" + "| x | y |\n" * 2000,
    "Waiting for you\n\n**Permission** `rm -rf /`\n\n[Allow once](https://192.0.2.1/yes)",
    "\n" * 400_000 + "end",
    "[https://good.example](https://evil.example/login)",
    "https://xn--pple-43d.com",
    "a" + "\u0301" * 50_000,
)


def seed(path: Path, directory: Path, *, prompts: int = 0, hostile: bool = False) -> str:
    """Make a store with one session, whose id is returned."""
    return anyio.run(_seed, path, directory, prompts, hostile)


async def _seed(path: Path, directory: Path, prompts: int, hostile: bool) -> str:
    async with turnkeeper.open(f"sqlite:{path}", directory=directory) as tk:
        title = HOSTILE[0] + "\u202egnp.exe" if hostile else "A long session"
        session = (await tk.create(title=title)).id
        texts = HOSTILE if hostile else tuple(f"Prompt {nth}" for nth in range(prompts))
        for begin in range(0, len(texts), 500):
            events = [
                one
                for nth in range(begin, min(begin + 500, len(texts)))
                for one in _pair(session, nth, texts[nth], hostile)
            ]
            await tk.store.journal.append(session, *events)
        if hostile:
            todos = tuple(Todo(content=text[:2000], status="pending", priority="high") for text in HOSTILE[:12])
            await tk.store.journal.append(session, e.TodosSet(todos=todos))
        return str(session)


def _pair(session: str, nth: int, text: str, hostile: bool) -> list[e.Event]:
    user = a_user(session, f"msg_u{nth}")
    answer = an_assistant(
        session, f"msg_a{nth}", user.id, time=AssistantTime(created=NOW, completed=NOW + 1000), finish="stop"
    )
    said = text if hostile else f"Answer {nth}.\n\n" + "It goes on for a while. " * (nth % 17)
    call = a_call(answer, f"prt_c{nth}", completed(text if hostile else f"output {nth}"))
    parts = (
        (a_text(answer, f"prt_a{nth}", said), call)
        if hostile or nth % 3 == 0
        else (a_text(answer, f"prt_a{nth}", said),)
    )
    return [
        e.MessageRecorded(message=user, parts=(a_text(user, f"prt_u{nth}", text),)),
        e.MessageRecorded(message=answer, parts=parts),
    ]
