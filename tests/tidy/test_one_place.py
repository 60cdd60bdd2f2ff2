"""A new field of a session, part and event each go where ARCHITECTURE says, and nowhere else. Done on a copy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

NOTE = '''"""NotePart: a remark."""

from turnkeeper.model.parts.base import BasePart


class NotePart(BasePart, tag_field="type", tag="note"):
    """A remark that is not shown to models."""

    remark: str
'''
CHANGES = {
    "model/parts/__init__.py": [
        (
            "from turnkeeper.model.parts.reasoning",
            "from turnkeeper.model.parts.note import NotePart\nfrom turnkeeper.model.parts.reasoning",
        ),
        ("    | ForeignPart\n)", "    | ForeignPart\n    | NotePart\n)"),
    ],
    "model/session.py": [
        ("    revert: Revert | None = None\n", "    revert: Revert | None = None\n    colour: str | None = None\n"),
        ("    time: SessionTime\n    extra", "    time: SessionTime\n    mood: Private[str | None] = None\n    extra"),
    ],
    "model/events/session.py": [
        (
            "class TodosSet(EventBase):",
            'class SessionColoured(EventBase):\n    """A colour."""\n\n'
            '    KIND = "session.coloured"\n    colour: str\n\n\n'
            "class TodosSet(EventBase):",
        ),
    ],
    "model/event.py": [
        ("    SessionCreated,\n", "    SessionColoured,\n    SessionCreated,\n"),
        ("    | TodosSet\n", "    | SessionColoured\n    | TodosSet\n"),
        ('    "SessionCreated",\n', '    "SessionColoured",\n    "SessionCreated",\n'),
    ],
    "core/projector.py": [
        (
            "        case _:\n            assert_never(event)",
            "        case e.SessionColoured(colour=colour):\n"
            '            return _active(view, time, colour=colour, mood="calm"), ()\n'
            "        case _:\n            assert_never(event)",
        ),
    ],
}
PROGRAM = """
import asyncio
from turnkeeper.model import event as e
from turnkeeper.model.parts.note import NotePart
from turnkeeper.model.value import encode
from turnkeeper.server.public import public
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries
from turnkeeper.testing.builders import a_session, a_user


class Clock:
    def now(self) -> int:
        return 5


async def main() -> None:
    engine, heard = MemoryEngine(), []
    journal = Journal(engine, Clock(), heard.append)
    user = a_user("ses_one", "msg_one")
    note = NotePart(id="prt_one", session_id="ses_one", message_id="msg_one", remark="odd")
    await journal.create(a_session("ses_one"), e.MessageRecorded(message=user, parts=(note,)))
    view = await journal.append("ses_one", e.SessionColoured(colour="red"))
    loaded = await Journal(engine, Clock(), heard.append).view("ses_one")
    message = await Queries(engine).message("ses_one", "msg_one")
    session = public(await Queries(engine).session("ses_one"))
    print(loaded == view, loaded.session.colour, loaded.session.mood, message.parts[0].remark)
    print(b'"colour":"red"' in encode(session), b"mood" in encode(session))
    print(heard[-1].type, heard[-1].properties["info"].colour)


asyncio.run(main())
"""


def test_a_field_of_a_session_a_part_and_an_event_need_no_other_place(tmp_path: Path) -> None:
    package = tmp_path / "src/turnkeeper"
    shutil.copytree(ROOT / "src/turnkeeper", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "model/parts/note.py").write_text(NOTE, "utf-8")
    for name, changes in CHANGES.items():
        text = (package / name).read_text("utf-8")
        for old, new in changes:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (package / name).write_text(text, "utf-8")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path / "src")}
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "True red calm odd\nTrue False\nsession.updated red\n", run.stderr
