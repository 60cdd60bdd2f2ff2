"""The pages about what is stored: events, and the shapes of sessions, messages and parts."""

import inspect
import sys
from typing import get_args

import msgspec

from reference_pages.wording import said, spelt
from turnkeeper.model.event import Event
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import Message
from turnkeeper.model.parts import Part
from turnkeeper.model.session import Session
from turnkeeper.model.status import Status
from turnkeeper.model.todo import Todo

EVENTS = """\
# Events

A log is made of these facts, and nothing else is true. Each entry of a log is one line of JSON:

```json
{"seq":2,"prev":"<32 hex digits>","time":1794767525690,"type":"session.titled.1","data":{"title":"Wind"}}
```

`seq` is the place, from 1 without a gap; `prev` the hash of the entry before (of the session's id, for the
first one); `time` the moment of recording in milliseconds since 1970; `type` the name below with the version
of its shape; `data` the event's own fields. A changed shape gets the next version and is read through an
upcast; an entry is never rewritten. What sessions, messages and parts hold is told in [shapes](shapes.md). A
question mark means that a field may be left out.

This page is written by `scripts/reference.py` from `src/turnkeeper/model/events`.
"""


SHAPES = """\
# Shapes

What sessions, messages and parts hold, as they are on the wire, in documents and in exports. A question mark
means that a field may be left out. `$extra` holds fields of imported data that we do not know; it is stored
and never exported as such, for an export puts the fields back in their places. `seq` and `nth` say where in
the log a message or a part was made. The words in parentheses (`role`, `type`, `status`, `name`) are on the wire
only: in Python they are the classes of `turnkeeper.model`, so that one asks `isinstance(message.info,
AssistantMessage)` and names fields as Python does (`session_id` for `sessionID`).

This page is written by `scripts/reference.py` from `src/turnkeeper/model`.
"""


def events_page() -> str:
    """A table for each module of events, in the order of the union."""
    page, module = EVENTS, ""
    for kind in get_args(Event):
        if kind.__module__ != module:
            module = kind.__module__
            heading = (inspect.getdoc(sys.modules[module]) or "").partition(":")[0]
            page += f"\n## {heading}\n\n| Event | In the log | Fields | Meaning |\n|---|---|---|---|\n"
        page += event_row(kind)
    return page


def event_row(kind: type[Event]) -> str:
    """One event's line of its table."""
    fields = msgspec.structs.fields(kind)
    shown = ", ".join(f"`{field.encode_name}`{'' if field.required else '?'}" for field in fields)
    return f"| `{kind.__name__}` | `{kind.KIND}.{kind.VERSION}` | {shown or 'none'} | {said(kind)} |\n"


def shapes_page() -> str:
    """A section for each group of values, and a list of fields for each of them."""
    groups: dict[str, tuple[type, ...]] = {
        "Session": (Session,),
        "Messages": get_args(Message),
        "Parts": get_args(Part),
        "Failures": get_args(Failure),
        "Status": get_args(Status),
        "Todo": (Todo,),
    }
    page, written, shown = SHAPES, set[type](), set[type]()
    for heading, kinds in groups.items():
        page += f"\n## {heading}\n"
        waiting = list(kinds)
        while waiting:
            kind = waiting.pop(0)
            if kind in written:
                continue
            written.add(kind)
            page += shape(kind)
            waiting += [inner for inner in inner_shapes(kind) if inner not in shown]
            shown.update(inner_shapes(kind))
    return page


def shape(kind: type) -> str:
    """One value: its tag, its meaning and its fields."""
    settings = kind.__struct_config__  # type: ignore[attr-defined]  # Every msgspec struct has it.
    tag = f" (`{settings.tag_field}` is `{settings.tag}`)" if settings.tag is not None else ""
    rows = "".join(
        f"| `{field.encode_name}`{'' if field.required else '?'} | {spelt(field.type)} |\n"
        for field in msgspec.structs.fields(kind)
    )
    table = f"\n| Field | Type |\n|---|---|\n{rows}" if rows else ""
    return f"\n### `{kind.__name__}`{tag}\n\n{said(kind)}\n{table}"


def inner_shapes(kind: type) -> list[type]:
    """The values that the fields of a value hold, in order."""
    found: list[type] = []

    def look(annotation: object) -> None:
        if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
            found.append(annotation)
        for argument in get_args(annotation):
            look(argument)

    for field in msgspec.structs.fields(kind):
        look(field.type)
    return found
