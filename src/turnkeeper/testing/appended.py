"""Lines that a process appends to a file, for tests that kill it and count what it did."""

import os
from pathlib import Path

ACKNOWLEDGED, EFFECTS = "acknowledged", "effects"
"""Files: prompts that were admitted, and what tools have done."""


def note(file: Path, text: str) -> None:
    """Append a line to a file in one write, because the process may exit before another."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{text}\n".encode())
    os.close(handle)
