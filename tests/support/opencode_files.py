"""opencode's files for the tests: a copy of what the real program wrote, and how to change it."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from turnkeeper.app import Turnkeeper
from turnkeeper.interop.report import ImportReport

FIXTURES = Path(__file__).parents[1] / "fixtures/opencode"
EXPORTS = sorted(FIXTURES.glob("export-*.json"))
MAIN = "ses_e1f51fd02ffeUWS15bdbhBWfvn"
COMPACTED = "ses_e1f51c506ffeQbTQ31lVSeNlax"
ABORTED = "ses_e1f51a9aeffeM3h7txSJotjL8O"
SECOND = "ses_e1f519853ffeI2QytqbBEQlQ2A"
"""The session of the second generation."""

Row = dict[str, Any]


def database(folder: Path) -> Path:
    """A copy of the real database, at rest."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(FIXTURES / "opencode-1.18.db", folder / "opencode.db"))


def change(path: Path, *statements: str) -> None:
    """Change a database as a program that then ends properly."""
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)


@contextmanager
def being_written(path: Path, *statements: str) -> Iterator[apsw.Connection]:
    """Change a database as a program that is still running: the change is only in the write-ahead log."""
    with closing(apsw.Connection(str(path))) as connection:
        for statement in ("PRAGMA journal_mode = wal", "PRAGMA wal_autocheckpoint = 0", *statements):
            connection.execute(statement)
        yield connection


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What a query says."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return list(connection.execute(query))


def second_message(path: Path, seq: int, kind: str, **data: Any) -> str:
    """Add a message of the second generation to its session; its id."""
    name = f"msg_1e0ae8{seq:06x}AAAAAAAAAAAAAA"
    data.setdefault("time", {"created": 1794770891600 + seq})
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(
            "INSERT INTO session_message (id, session_id, type, seq, time_created, time_updated, data)"
            " VALUES (?, ?, ?, ?, 1, 1, ?)",
            (name, SECOND, kind, seq, json.dumps(data)),
        )
    return name


def a_repository(place: Path) -> None:
    """A git repository with one commit."""
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    subprocess.run(["git", "-C", str(place), *identity, "commit", "-q", "--allow-empty", "-m", "first"], check=True)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


async def dump(tk: Turnkeeper) -> dict[object, object]:
    """Everything a store holds: logs and documents."""
    engine = tk.store.engine
    logs: dict[object, object] = {name: tuple(await engine.read(name)) for name in await engine.logs()}
    return {**logs, **dict(await engine.scan(()))}


async def exported(tk: Turnkeeper, session_id: str, *, sanitise: bool = False) -> Any:
    """An export, parsed."""
    return json.loads(b"".join([piece async for piece in tk.export(session_id, sanitise=sanitise)]))


async def imported(tk: Turnkeeper, folder: Path, json_value: object) -> ImportReport:
    """Import a JSON value from a file."""
    file = folder / "given.json"
    file.write_text(json.dumps(json_value))
    return await tk.import_sessions(file)
