"""Write a golden log: a log as this version writes it, and the documents it stands for. Existing ones stay.

``python scripts/make_golden.py NAME`` writes tests/golden/NAME.jsonl and tests/golden/NAME.json.
A golden log must open for ever; make a new one whenever an event is added or its shape gets a new version.
"""

import asyncio
import json
import sys
from pathlib import Path

from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.mint import Mint
from turnkeeper.model import event as e
from turnkeeper.store.engine import path
from turnkeeper.store.engines import open_engine
from turnkeeper.store.journal import Journal
from turnkeeper.testing.builders import a_text, a_user, every_event

GOLDEN = Path(__file__).parents[1] / "tests/golden"
SESSION = "ses_golden"


async def make(name: str) -> None:
    """Live a life in which every kind of event happens, and write down what is left of it."""
    log, expectations = GOLDEN / f"{name}.jsonl", GOLDEN / f"{name}.json"
    if log.exists() or expectations.exists():
        sys.exit(f"{name} is there already, and a golden log never changes; choose another name")
    engine = await open_engine("memory:")
    journal = Journal(engine, Mint.fixed(step_ms=1), lambda notification: None)
    created, *rest = every_event(SESSION, mint=Mint.fixed())
    assert isinstance(created, e.SessionCreated)
    long = a_user(SESSION, "msg_long")
    blob = e.MessageRecorded(message=long, parts=(a_text(long, "prt_long", "x" * BLOB_CHARS_MIN),))
    await journal.create(created.session)
    for event in [*rest, blob]:
        await journal.append(SESSION, event)
    entries = await engine.read(SESSION)
    documents = dict(await engine.scan(()))
    blobs = {key[1]: body.decode() for key, body in documents.items() if key[0] == "blob"}
    derived = {path(key): json.loads(body) for key, body in documents.items() if key[0] != "blob"}
    log.write_bytes(b"".join(entry + b"\n" for entry in entries))
    content = {"session": SESSION, "blobs": blobs, "documents": derived}
    expectations.write_text(json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
    print(f"{len(entries)} events, {len(derived)} documents in {log.name} and {expectations.name}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    asyncio.run(make(sys.argv[1]))
