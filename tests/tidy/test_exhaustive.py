"""A new event, and a new change, that some reader of the log does not handle fails the type check. Shown on a copy."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECTOR = "core/projector.py"
READERS = ("store/document_writes.py", "core/history.py", "core/notify.py", "server/v2/event.py")


def widen(file: Path, union: str, last: str, declared: str) -> None:
    """Declare one more class before a union, and make it a member."""
    text = file.read_text("utf-8")
    assert text.count(f"    | {last}\n)") == 1
    text = text.replace(f"    | {last}\n)", f"    | {last}\n    | Forgotten\n)")
    file.write_text(text.replace(f"{union}: TypeAlias = (", f"{declared}\n\n\n{union}: TypeAlias = ("), "utf-8")


@pytest.mark.timeout(300)
def test_an_event_or_a_change_that_a_reader_leaves_out_is_a_type_error(tmp_path: Path) -> None:
    package = tmp_path / "turnkeeper"
    shutil.copytree(ROOT / "src/turnkeeper", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    widen(package / "model/event.py", "Event", "ChildEnded", 'class Forgotten(EventBase):\n    KIND = "forgotten"')
    widen(package / "core/changes.py", "Change", "AskGone", "class Forgotten(NamedTuple):\n    seq: int")
    files = [str(package / name) for name in (PROJECTOR, *READERS)]
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--cache-dir",
        str(tmp_path / "cache"),
        "--follow-imports",
        "silent",
        *files,
    ]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    wrong = re.findall(
        r"^(?:turnkeeper/)?(\S+):\d+: error: Argument 1 to \"assert_never\"", checked.stdout, re.MULTILINE
    )
    assert sorted({name.removeprefix("turnkeeper/") for name in wrong}) == sorted((PROJECTOR, *READERS)), checked.stdout
