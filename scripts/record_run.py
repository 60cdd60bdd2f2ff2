"""Record ``make run`` as docs/images/run.svg: the real program on a terminal of 100 columns, from its second prompt."""

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from turnkeeper.testing.terminal_emulator import TerminalEmulator

ROOT = Path(__file__).resolve().parent.parent
IMAGE = ROOT / "docs/images/run.svg"
WIDTH = 100
CELL_WIDTH = 12.2
"""Of the pictures that rich draws."""
FIRST = "$ turnkeeper run -c"
"""Where the picture begins: a minute's output is too long for one."""
THEME = TerminalTheme(
    (22, 24, 29),
    (214, 217, 224),
    [
        (22, 24, 29),
        (235, 110, 110),
        (126, 200, 130),
        (226, 186, 100),
        (118, 168, 245),
        (190, 140, 230),
        (98, 200, 210),
        (214, 217, 224),
    ],
    [
        (110, 115, 125),
        (245, 130, 130),
        (150, 215, 155),
        (240, 205, 130),
        (140, 185, 250),
        (205, 160, 240),
        (125, 215, 225),
        (240, 242, 246),
    ],
)


def main() -> int:
    """Run the demo, and draw what a person sees in the end."""
    environment = {**os.environ, "COLUMNS": str(WIDTH), "LINES": "50", "TERM": "xterm-256color"}
    output, code = on_terminal([sys.executable, str(ROOT / "scripts/demo.py")], ROOT, environment)
    assert code == 0, output
    emulator = TerminalEmulator(WIDTH)
    emulator.feed(output)
    start = next(number for number, line in enumerate(emulator.lines) if line.startswith(FIRST))
    draw(IMAGE, emulator.painted()[start:-2], width=WIDTH, title="make run")
    return 0


def draw(image: Path, lines: Iterable[str], *, width: int, title: str) -> None:
    """Draw lines as a terminal shows them."""
    console = Console(file=io.StringIO(), record=True, width=width, force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(Text.from_ansi(line), highlight=False, soft_wrap=True)
    write(image, console.export_svg(title=title, theme=THEME, unique_id=image.stem))


def write(image: Path, drawn: str) -> None:
    """Write a picture that rich has drawn, so that every viewer shows it without fetching anything."""
    drawn = re.sub(r"\s*<!--.*?-->", "", drawn, flags=re.S)
    # The fonts rich names would be fetched from elsewhere; whoever looks has one of their own.
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.S).replace(
        "Fira Code", "ui-monospace, Menlo, Consolas"
    )
    # Not every viewer keeps spaces at the beginning of a text, and the lowest line needs room for its underscores.
    drawn = re.sub(r'x="([\d.]+)"( y="[\d.]+") textLength="([\d.]+)"( [^>]*>)((?:&#160;)+)(?!<|&#160;)', _moved, drawn)
    drawn = re.sub(r'(clip-terminal">\s*<rect [^>]*height=")([\d.]+)', _taller, drawn)
    image.write_text(re.sub(r"[ \t]+$", "", drawn, flags=re.M), "utf-8")


def _moved(text: re.Match[str]) -> str:
    """A text that begins where its first letter is."""
    x, y, length, rest, spaces = text.groups()
    by = CELL_WIDTH * spaces.count("&")
    return f'x="{float(x) + by:g}"{y} textLength="{float(length) - by:g}"{rest}'


def _taller(rect: re.Match[str]) -> str:
    return f"{rect[1]}{float(rect[2]) + 6:g}"


def on_terminal(command: list[str], directory: Path, environment: Mapping[str, str]) -> tuple[str, int]:
    """The output of a command on a terminal, and its exit code."""
    ours, its = pty.openpty()
    with subprocess.Popen(
        command, cwd=directory, env=environment, stdin=its, stdout=its, stderr=its, start_new_session=True
    ) as process:
        os.close(its)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # The other end is closed: the program has ended.
                piece = b""
            if not piece:
                break
            pieces.append(piece)
        code = process.wait()
    os.close(ours)
    return b"".join(pieces).decode(), code


if __name__ == "__main__":
    sys.exit(main())
