"""Walk through a long session and write docs/guides/long-sessions.md from what really happens in it.

``python scripts/long_session.py`` prints the page; ``--write`` writes it. The session is run by the real loop over a
real store; only its model is played by rules, with a window of 32,000 tokens that it enforces. The commands are real.
"""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from turnkeeper.core.compaction import summary_text
from turnkeeper.core.handles import handles_in
from turnkeeper.core.history import HistoryItem
from turnkeeper.model import event as e
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.request import Text, ToolTurn, UserTurn
from turnkeeper.testing.harness import MODEL, Stage, StageOptions, a_tool, stage
from turnkeeper.testing.windowed import Windowed, WindowedTurn
from turnkeeper.tools.tool import ToolContext

PAGE = Path(__file__).parents[1] / "docs/guides/long-sessions.md"
WINDOW, PROMPTS = 32_000, 60
SECRET = "The harbour master's code is 7-4-1-9."


async def _survey(text: str, context: ToolContext) -> str:
    """A long table; the one thing worth knowing stands in the middle of the third."""
    rows = [f"pier {text}, berth {berth}: depth {(int(text) * 37 + berth * 13) % 90 / 10} m" for berth in range(260)]
    if text == "3":
        rows.insert(130, SECRET)
    return "\n".join(rows)


def _answers(asked: str, results: ToolTurn | None) -> WindowedTurn:
    if results is None and (pier := re.search(r"pier (\d+)", asked)):
        return WindowedTurn(text="I look it up.", tool="survey", calls=({"text": pier[1]},))
    return WindowedTurn(text=f"Noted: {asked[:60]}")


def _summarises(asked: str) -> WindowedTurn:
    """What a good summariser would write: what was done so far, out of the notes before and the conversation since."""
    piers = sorted({int(one) for one in re.findall(r"[Pp]ier (\d+)", asked)} | set(range(_known(asked))))
    done = f"## Work State\n### Completed\n- Piers 0 to {piers[-1]} are surveyed; nothing odd was noted."
    objective = "## Objective\nSurvey the harbour pier by pier and note what is odd."
    return WindowedTurn(text=f"{objective}\n\n{done}\n\n## Next Move\n- The next pier the user names.")


def _known(asked: str) -> int:
    """Up to which pier the notes before have it."""
    before = re.search(r"Piers 0 to (\d+) are surveyed", asked)
    return int(before[1]) + 1 if before else 0


def _config() -> dict[str, object]:
    model = {**MODEL, "limit": {"context": WINDOW, "output": 4_000}}
    provider = {"protocol": "openai-chat", "options": {"baseURL": "http://127.0.0.1:1/v1"}, "models": {"small": model}}
    return {"model": "acme/small", "provider": {"acme": provider}}


async def _live(folder: Path) -> dict[str, str]:
    """The session's life, and what is told of it."""
    model = Windowed(WINDOW, _answers, _summarises)
    options = StageOptions(tools=(a_tool("survey", _survey),), config=_config(), in_a_hurry=True)
    rows: list[str] = []
    async with stage(f"sqlite:{folder}/turnkeeper.db", folder / "harbour", model, options) as opened:
        session = await opened.session(title="Survey the harbour")
        for number in range(PROMPTS):
            before = len(await _summaries(opened, session))
            await opened.ask(session, f"survey pier {number} and note what is odd")
            done = len(await _summaries(opened, session))
            if number % 6 == 0 or done > before:
                mark = "compacted" if done > before else ""
                rows.append(f"| {number + 1} | {model.sizes[-1]:,} | {await _events(opened, session):,} | {mark} |")
        summaries = await _summaries(opened, session)
        shown = _shown(model)
        small = await opened.session(title="A small one")
        await opened.ask(small, "hello")
        return {
            "small": small,
            "session": session,
            "rows": "\n".join(rows),
            "largest": f"{max(model.sizes):,}",
            "refused": str(model.refused),
            "compactions": str(len(summaries)),
            "summary": summary_text(summaries[-1]),
            "shown": shown,
            "prompts": str(PROMPTS),
            "window": f"{WINDOW:,}",
        }


async def _summaries(opened: Stage, session: str) -> list[HistoryItem]:
    found = []
    for message in await opened.messages(session):
        if isinstance(message.info, AssistantMessage) and message.info.summary:
            found.append(HistoryItem(message=message.info, parts=message.parts))
    return found


async def _events(opened: Stage, session: str) -> int:
    return sum(not isinstance(one, e.StatusChanged) for one in await opened.events(session))


def _shown(model: Windowed) -> str:
    """The beginning of each message of the last request."""
    lines = []
    for message in model.requests[-1].messages[:6]:
        words = "(tool results)"
        if not isinstance(message, ToolTurn) and hasattr(message, "content"):
            words = " ".join(part.text for part in message.content if isinstance(part, Text))
        role = "user" if isinstance(message, UserTurn) else "tool" if isinstance(message, ToolTurn) else "assistant"
        lines.append(f"{role:<10}{' '.join(words.split())[:78]}")
    more = len(model.requests[-1].messages) - 6
    return "\n".join([*lines, f"... and {more} more"])


def _command(folder: Path, *words: str) -> str:
    """What a command prints, as it would be typed."""
    settings = {"TURNKEEPER_STORE": f"sqlite:{folder}/turnkeeper.db", "TURNKEEPER_TRUST": "1"}
    environ = {**os.environ, **settings, "NO_COLOR": "1", "COLUMNS": "100"}
    run = subprocess.run(
        [sys.executable, "-m", "turnkeeper.cli.main", *words],
        env=environ,
        cwd=folder / "harbour",
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise SystemExit(f"turnkeeper {' '.join(words)} ended with {run.returncode}: {run.stderr}")
    shown = (run.stdout.rstrip() + "\n" + run.stderr.rstrip()).strip()
    lines = [line[:110] for line in shown.replace(str(folder), "~").splitlines()]
    lines = [line for line in lines if not line.startswith(("Engine", "On disk"))]  # They differ between machines.
    kept = [*lines[:7], "..."] if len(lines) > 9 else lines
    return "\n".join([f"$ turnkeeper {' '.join(_quoted(word) for word in words)}", *kept])


def _place_of_the_secret() -> int:
    table = asyncio.run(_survey("3", None))  # type: ignore[arg-type] # It looks at nothing but the text.
    return table.index(SECRET) - 64


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word


def page() -> str:
    """The whole page."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        told = asyncio.run(_live(folder))
        session = told["session"]
        found = _command(folder, "session", "recall", session, "--query", "harbour master")
        handle = handles_in(found)[0]
        told["search"] = found
        told["recall"] = _command(folder, "session", "recall", session, handle, "--offset", str(_place_of_the_secret()))
        told["little"] = _command(folder, "session", "compact", told["small"])
        told["doctor"] = _command(folder, "doctor")
    return TEMPLATE.format(**told)


TEMPLATE = """\
# Long sessions

A session can go on for ever, in any window, and nothing it ever knew is lost. This page is written by
`scripts/long_session.py`: it lets a session live through {prompts} prompts against a model whose window is {window}
tokens and which refuses whatever is larger, and shows what happened. Every figure and answer below is from that run.

## What happens

Each prompt has a long table looked up. The request grows until the next one would not fit; then a **Summary** takes the
place of the older history, the newest part stays word for word, and the work goes on:

| prompt | tokens of the newest request | events in the log | |
|---|---|---|---|
{rows}

The largest request had {largest} tokens, {refused} were refused, and there were {compactions} compactions. The log only
ever grew.

## What the model is shown

The beginning of the last request: the Summary, then the **tail**, which is kept word for word, then what came later.

```
{shown}
```

The Summary itself. It is held to a **contract** by code: it must keep within its
size, hold the user's last request word for word unless that is in the tail, the open tasks, the plan's path and the
files that were changed, and name no recall handle that does not exist. What it lacks is added by
code. Only without a usable answer a digest is made without any model. So the session always goes on.

```
{summary}
```

A prompt that nobody has answered yet is never summarised: it is asked again behind the Summary. If the provider itself
says that a request was too large, the same is done once, with media left out; a second refusal ends the turn with a
`ContextOverflowError` instead of a loop. The next prompt goes on: a prompt that was too large by itself is left out of
later requests, with a line that tells the model so and names its recall handle.

## What is hidden can be had back

What was compacted, pruned or cut is in the store, under a **recall handle**: the fingerprint of its text. The model has
the tool `recall`; people have a command. In the third table stood something that no later request has any more:

```
{search}
```

```
{recall}
```

## Pruning

Old tool outputs leave the model's view before whole turns do: beyond the newest 40,000 tokens of outputs and the two
newest turns, if 20,000 tokens are to be had. By default only where it costs nothing: when an epoch begins or the
provider's cache is cold, so that all is read anew in any case, when the request would not fit otherwise, or when
carrying the outputs along would be dearer than reading the rest anew. It is an event, `outputs.pruned`, and the request
after it names it as the reason why less could be reused (`turnkeeper session context`).

## By hand

```
{little}
```

`--force` compacts in any case. In `turnkeeper run` and in opencode's terminal it is `/compact`.

## Settings

In `turnkeeper.json` or `opencode.json`:

| Key | Default | What |
|---|---|---|
| `compaction.auto` | true | compact before a request would not fit, and after a provider refuses one |
| `compaction.prune` | `"pays"` | false: never; `"always"`: after each run, whatever it costs |
| `compaction.reserved` | the answer's size | tokens kept free in the window |
| `compaction.preserve_recent_tokens` | a quarter of the window, 2,000 to 15,000 | how much stays word for word |
| `compaction.tail_turns` | no limit | how many turns stay word for word at the most; 0: none |
| `compaction.max_tokens`, `compaction.max_messages` | none | compact above this size, even if more would fit |
| `tool_output.max_lines`, `tool_output.max_bytes` | 2,000, 51,200 | how much of one output the model is shown |
| `agent.compaction.model`, `.prompt` | the session's model, ours | who writes Summaries, and how |

`OPENCODE_DISABLE_AUTOCOMPACT` and `OPENCODE_DISABLE_PRUNE` (or the same with `TURNKEEPER_`) switch them off for one
process.

## And the store is sound

```
{doctor}
```
"""


def main(arguments: list[str]) -> int:
    """Print the page, or write it."""
    text = page()
    if arguments == ["--write"]:
        PAGE.write_text(text)
    elif arguments == ["--check"]:
        if PAGE.read_text() != text:
            print(f"{PAGE.name} is not what scripts/long_session.py --write would write")
            return 1
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
