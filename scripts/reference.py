"""Write the reference pages that are derived from the code alone: events, shapes, tools and the Python interface.

``make check`` fails when one of them differs from what this would write. What is on them: ``scripts/reference_pages``.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from reference_pages.modules import modules_page
from reference_pages.python import client_page, python_page
from reference_pages.stored import events_page, shapes_page
from reference_pages.tools import tools_page

PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/events.md": events_page,
    "docs/reference/shapes.md": shapes_page,
    "docs/reference/python.md": python_page,
    "docs/reference/client.md": client_page,
    "docs/reference/tools.md": tools_page,
    "docs/reference/modules.md": modules_page,
}


def main(arguments: list[str]) -> int:
    """Write the pages; with ``--check`` write nothing, and say which ones differ."""
    root = Path(__file__).resolve().parent.parent
    differing = []
    for name, page in PAGES.items():
        file = root / name
        text = page()
        if not file.is_file() or file.read_text("utf-8") != text:
            differing.append(name)
            if "--check" not in arguments:
                file.write_text(text, "utf-8")
    for name in differing:
        print(f"{name}: {'differs from the code; run scripts/reference.py' if '--check' in arguments else 'written'}")
    return 1 if differing and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
