"""Write the reference pages that are derived from the code alone: ``docs/reference/events.md``."""

import re
import sys
from pathlib import Path
from typing import get_args

import msgspec

from turnkeeper.model import event
from turnkeeper.model.event import Event

PAGE = "docs/reference/events.md"
HEAD = """\
# Events

A log is made of these facts, and nothing else is true. Each entry of a log is one line of JSON:

```json
{"seq":2,"prev":"<32 hex digits>","time":1794767525690,"type":"session.titled.1","data":{"title":"Wind"}}
```

`seq` is the place, from 1 without a gap; `prev` the hash of the entry before (of the session's id, for the
first one); `time` the moment of recording in milliseconds since 1970; `type` the name below with the version
of its shape; `data` the event's own fields. A changed shape gets the next version and is read through an
upcast; an entry is never rewritten. The fields of sessions, messages and parts are those of the classes in
`src/turnkeeper/model`, in their wire names. A question mark means that a field may be left out.

This page is written by `scripts/reference.py` from `src/turnkeeper/model/event.py`.
"""
COLUMNS = "| Event | In the log | Fields | Meaning |\n|---|---|---|---|\n"


def events_page(source: str) -> str:
    """The page of events: a table for each comment that heads a group of classes."""
    page = HEAD
    kinds = {kind.__name__: kind for kind in get_args(Event)}
    for line in source.splitlines():
        if heading := re.fullmatch(r"# ([A-Z].*?)\.?", line):
            page += f"\n## {heading[1]}\n\n{COLUMNS}"
        elif (found := re.match(r"class (\w+)\(", line)) and found[1] in kinds:
            page += row(kinds[found[1]])
    return page


def row(kind: type[Event]) -> str:
    """One event's line of its table."""
    shown = ", ".join(
        f"`{field.encode_name}`{'' if field.required else '?'}" for field in msgspec.structs.fields(kind)
    )
    meaning = " ".join((kind.__doc__ or "").split()).replace("``", "`").replace("None", "null")
    return f"| `{kind.__name__}` | `{kind.KIND}.{kind.VERSION}` | {shown or 'none'} | {meaning} |\n"


def main(root: Path) -> None:
    """Write the pages below this root."""
    (root / PAGE).write_text(events_page(Path(event.__file__).read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
