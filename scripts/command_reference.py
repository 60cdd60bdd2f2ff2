"""Write docs/reference/commands.md from the commands' own help; with --check, fail if the page differs."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

from cyclopts import App
from rich.console import Console

from turnkeeper.cli.commands import app

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/commands.md"
WIDTH = 80

INTRODUCTION = """\
# Commands

<!-- Written by scripts/command_reference.py from the commands' own help; `make check` compares. -->

`turnkeeper` and `tk` are the same program. Every command and every group has `--help`.

**Ids.** Where a command takes an ID, its first four or more characters are enough if they fit one thing, with or
without `ses_`; a session can also be named by its slug. A name that fits several is refused, with a list of them.

**The store.** `--store sqlite:PATH`, `--store files:DIR`, `--store postgresql://USER@HOST/DATABASE` ([the
guide](../guides/scale-out.md)) or `--store memory:`; without it the SQLite file in the data directory, which `--data
DIR` or `TURNKEEPER_DATA` names; see [environment](environment.md). Commands that write create a missing store. Commands
that only read treat a missing file or directory as an empty store and do not create it. These options can stand before
or after the command.

**A server.** With `--server URL`, or `TURNKEEPER_SERVER` if no store is named, `run` and the `session` commands use a
running `turnkeeper serve`; see [the guide](../guides/server.md). Commands that need a store, or files of this machine,
do not list `--server` in their help, and refuse it with exit code 2.

**Output.** Standard output has the answer and nothing else; remarks, questions and progress go to standard error. On a
terminal the answer has colours (`NO_COLOR` turns them off) and fits the window; otherwise no line is shortened. With
`--json` it is [JSON](#json).

**Failures** are one or two lines on standard error, with advice.

| Exit code | Meaning |
|---|---|
| 0 | success; also if the reader of the output closed it |
| 1 | refused, not found, damaged, or an error of the system |
| 2 | the command line is wrong |
| 130 | interrupted |

## JSON

With `--json` a command prints one JSON object on standard output, on one line unless it goes to a terminal. Its help
names the keys. They are in camelCase, as in the HTTP API, and values are those of [shapes](shapes.md).

- A command that lists things prints `{"items": [...]}`, and beside it what else there is to say: `default`, `problems`
  (what was skipped, and why), `damaged` (names of documents that cannot be read; then the exit code is 1).
- A page has the cursor `older`, which goes to `--before`, and `newer`, which goes to `--after`. The last page has none.
- A command about one thing prints that thing, or a report on it. A report may have several lists, each under its name:
  `stats` has `days`, `models` and `sessions`.
- `run`, `session resume`, `session watch` and `session log` print one object a line, as things happen. `serve` and
  `worker` print one line when they are ready.
- `session export` prints the session as opencode does, `session log` prints events as they are stored, and `config
  schema` prints a JSON Schema. Tool arguments, metadata and settings keep the names that they came with.
- A failure leaves standard output empty, and the last line of standard error is `{"error": {"name": ..., "message":
  ...}}`. Names are `NotFound`, `Conflict`, `Invalid`, `Forbidden`, `Busy`, `StoreUnavailable`, `Damaged`, `System`,
  `Usage`, `Interrupted`.
- `chat`, `demo` and `config edit` need a person and refuse `--json`.
"""


def page() -> str:
    """The page as it should be."""
    chains = list(_chains(app))  # All commands are imported before the first page lists them.
    return "\n".join([INTRODUCTION, *map(_block, chains)])


def _chains(group: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every group and command, in the order of the help pages."""
    yield path
    for name in group:
        if not name.startswith("-"):
            yield from _chains(group[name], (*path, name))


def _block(chain: tuple[str, ...]) -> str:
    text = io.StringIO()
    app.help_print(list(chain), console=Console(file=text, width=WIDTH, color_system=None))
    lines = "\n".join(line.rstrip() for line in text.getvalue().splitlines())
    return f"## `{' '.join(['turnkeeper', *chain])}`\n\n```text\n{lines}\n```\n"


def main(arguments: list[str]) -> int:
    """Write the page, or say whether it is as it should be."""
    expected = page()
    if "--check" not in arguments:
        PAGE.write_text(expected, "utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text("utf-8") == expected:
        return 0
    print("docs/reference/commands.md: differs from the commands; run scripts/command_reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
