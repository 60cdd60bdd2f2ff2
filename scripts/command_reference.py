"""Write docs/reference/commands.md from the commands' own help; with --check, fail if the page differs."""

import sys
from pathlib import Path

from turnkeeper.cli import help
from turnkeeper.cli.commands import ROOT, Command, build

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/commands.md"
WIDTH = 100

INTRODUCTION = """\
# Commands

<!-- Written by scripts/command_reference.py from the commands' own help; `make check` compares. -->

`turnkeeper` and `tk` are the same program. `--help` works behind every command and every group.

**Ids.** Where an ID is expected, four or more characters of its beginning will do if they name one thing, with or
without `ses_`; a session may also be named by its slug. What may be several things is refused, and the candidates are
listed.

**The store.** `--store sqlite:PATH`, `--store files:DIR` or `--store memory:`; without it the SQLite file in the data
directory, which `--data DIR` or `TURNKEEPER_DATA` names; see [environment](environment.md). Commands that write make
the store if it is not there. Commands that only read find it empty and do not make it. These options may stand before
the command or behind it.

**A server.** With `--server URL`, or `TURNKEEPER_SERVER` where no store is named, `run` and the `session` commands work
through a running `turnkeeper serve`; see [the guide](../guides/server.md). What servers do not do (`session search`,
`recall`, `context`, `move`, `resume`, `recover`, export, import, `stats`, `doctor`) is refused with exit code 2.

**Output.** Standard output holds the answer and nothing else; remarks, questions and progress go to standard error.
The answer is text for people: on a terminal it has colours (`NO_COLOR` turns them off) and fits the window; otherwise
nothing is shortened. With `--json` it is JSON, the values as [shapes](shapes.md) describes them, on one line if it
does not go to a terminal.

**Failures** are one or two lines on standard error that say what to do. With `--json`, standard output stays empty and
the last line of standard error is `{"error": {"name": ..., "message": ...}}`. Names are `NotFound`, `Conflict`,
`Invalid`, `Forbidden`, `Busy`, `StoreUnavailable`, `Damaged`, `System`, `Usage`, `Interrupted`.

| Exit code | Meaning |
|---|---|
| 0 | done; also when whoever read the output stopped reading |
| 1 | refused, not found, damaged, or the disk said no |
| 2 | the command line makes no sense |
| 130 | interrupted |
"""


def page() -> str:
    """The page as it should be."""
    blocks = [INTRODUCTION, _block(())]
    blocks += [_block(chain) for chain in _chains(ROOT)]
    return "\n".join(blocks)


def _chains(group: Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for command in group.commands:
        chain = (*path, command.name)
        found += [chain, *_chains(command, chain)]
    return found


def _block(chain: tuple[str, ...]) -> str:
    app = build()
    chain_, apps, _ = app.parse_commands(list(chain))
    heading = " ".join(["turnkeeper", *chain])
    return f"## `{heading}`\n\n```text\n{help.page(apps, chain_, WIDTH)}```\n"


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
