"""Run the README's five minutes in a scratch directory, and paste what the commands print where it is shown.

Each ``sh`` block of that section is typed line by line into one shell. An ``<!-- output: COMMAND -->`` takes what the
last command that begins so has printed, in a window of 100 columns. ``--check`` writes nothing and says what differs.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
MARK = "@@@ "
SHOWN = re.compile(r"(<!-- output: (.+?) -->\n```text\n)(.*?)(```)", re.DOTALL)
LINE_MAX = 118


def lines(page: str) -> list[str]:
    """What a reader types, but for setting up, which was done."""
    section = page.partition("## Five minutes")[2].partition("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line and line != "make setup"]


def outputs(typed: list[str]) -> dict[str, str]:
    """What each line prints, on either channel, with no configuration and no key of this machine."""
    script = "".join(f"printf '%s%s\\n' '{MARK}' {number}\n{line}\n" for number, line in enumerate(typed))
    with TemporaryDirectory() as home:
        tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": tools, "HOME": home, "TMPDIR": home, "COLUMNS": "100", "TZ": "UTC", "LANG": "C.UTF-8"}
        run = subprocess.run(
            ["bash", "-euc", script],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        printed = run.stdout.replace(str(ROOT), "~/turnkeeper").replace(home, "~")
    if run.returncode:
        raise SystemExit(f"README.md: a command failed\n{printed}")
    pieces = re.split(rf"^{MARK}\d+\n", printed, flags=re.MULTILINE)[1:]
    return dict(zip(typed, (re.sub(r"~/tmp\.\w+", "~/scratch", piece) for piece in pieces), strict=True))


def folded(text: str) -> str:
    """Long lines wrapped as a window would, so that the page can be read."""
    rows = []
    for row in text.splitlines():
        while len(row) > LINE_MAX:
            cut = row.rfind(" ", 0, LINE_MAX)
            rows.append(row[: cut if cut > 0 else LINE_MAX])
            row = row[cut + 1 if cut > 0 else LINE_MAX :]
        rows.append(row)
    return "".join(f"{row.rstrip()}\n" for row in rows)


def fill(page: str) -> str:
    """The page with every output in its place."""
    printed = outputs(lines(page))

    def place(shown: "re.Match[str]") -> str:
        found = [text for line, text in printed.items() if line.startswith(shown[2])]
        assert found, f"no command of the README begins with {shown[2]!r}"
        return f"{shown[1]}{folded(found[0])}{shown[4]}"

    return SHOWN.sub(place, page)


def words(page: str) -> list[str]:
    """What is shown, without what differs from day to day: ids, numbers, times and the widths that follow from them."""
    text = "\n".join(shown[3] for shown in SHOWN.finditer(page))
    text = re.sub(r"\b(ses|msg|prt)_\w+", "ID", text)
    text = re.sub(r"\bnow\b|\d+ \w+ ago|yesterday|\d{4}-\d\d-\d\d(?: \d\d:\d\d)?", "THEN", text)
    text = re.sub(r"\d[\d,.]*[KMG]?", "N", text)
    return text.replace("…", " ").split()


def main(arguments: list[str]) -> int:
    """Paste, or say whether what is shown is what is printed."""
    page = README.read_text("utf-8")
    now = fill(page)
    if "--check" not in arguments:
        README.write_text(now, "utf-8")
        return 0
    if words(page) == words(now):
        return 0
    print("README.md: shows what is no longer printed; run scripts/readme.py")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
