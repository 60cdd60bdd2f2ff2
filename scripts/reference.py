"""Write the reference pages that are derived from the code alone: events, shapes and the Python interface.

``make check`` fails when one of them differs from what this would write.
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import msgspec

from turnkeeper.api import Turnkeeper
from turnkeeper.api.records import Records as TurnkeeperRecords
from turnkeeper.client import Client
from turnkeeper.client.records import Records
from turnkeeper.model import event
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

This page is written by `scripts/reference.py` from `src/turnkeeper/model/event.py`.
"""

SHAPES = """\
# Shapes

What sessions, messages and parts hold, as they are on the wire, in documents and in exports. A question mark
means that a field may be left out. `$extra` holds fields of imported data that we do not know; it is stored
and never exported as such, for an export puts the fields back in their places. `seq` and `nth` say where in
the log a message or a part was made.

This page is written by `scripts/reference.py` from `src/turnkeeper/model`.
"""

PYTHON = """\
# Python

```python
import turnkeeper

async with turnkeeper.open("sqlite:sessions.db") as tk:
    session = await tk.create(title="Wind over the bay")
```

`turnkeeper.open` takes `sqlite:PATH`, `files:DIR` or `memory:`, and without any the user's own store. What it
gives has these methods. When a method that writes has returned, the write is on the disk. Refusals are the
exceptions of `turnkeeper.model.refusal`: `NotFound`, `Conflict`, `Invalid`, `Forbidden` and `Busy`.

This page is written by `scripts/reference.py` from `src/turnkeeper/api`.
"""

CLIENT = """\
# The client

```python
from turnkeeper.client import Client

async with Client("http://127.0.0.1:4096", password="...") as client:
    session = await client.create(title="Wind over the bay")
```

The sessions of a [server](../guides/server.md), with the methods and values of [Turnkeeper](python.md) as far as a
server serves them. Refusals are the same exceptions; `turnkeeper.client.errors` has two more: `Unreachable` if
nobody answers, and `Unexpected` if what answers is no server of ours or has a bug.

This page is written by `scripts/reference.py` from `src/turnkeeper/client`.
"""


def events_page() -> str:
    """A table for each comment that heads a group of event classes."""
    page = EVENTS
    kinds = {kind.__name__: kind for kind in get_args(Event)}
    for line in Path(event.__file__).read_text("utf-8").splitlines():
        if heading := re.fullmatch(r"# ([A-Z].*?)\.?", line):
            page += f"\n## {heading[1]}\n\n| Event | In the log | Fields | Meaning |\n|---|---|---|---|\n"
        elif (found := re.match(r"class (\w+)\(", line)) and found[1] in kinds:
            page += event_row(kinds[found[1]])
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


def spelt(annotation: object) -> str:
    """A type for people who read JSON."""
    arguments = [argument for argument in get_args(annotation) if argument is not NoneType]
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        if set(arguments) == {int, float}:
            return "number"
        return " or ".join(dict.fromkeys(spelt(argument) for argument in arguments))
    if origin is Annotated:
        return spelt(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{argument}`" for argument in arguments)
    if origin is tuple:
        return f"list of {spelt(arguments[0])}"
    if origin in (dict, Mapping):
        inner = spelt(arguments[1])
        return "object" if inner == "any JSON" else f"object of {inner}"
    plain = {str: "string", int: "integer", float: "number", bool: "boolean", object: "any JSON"}
    if isinstance(annotation, type):
        return plain.get(annotation, f"`{annotation.__name__}`")
    raise TypeError(f"no words for the type {annotation!r}; teach spelt() some")


def python_page() -> str:
    """Every public method with its signature and its contract."""
    return PYTHON + methods(TurnkeeperRecords, "tk") + methods(Turnkeeper, "tk")


def client_page() -> str:
    """The same of the client: how one is made, then what it does."""
    made = f"\n### `Client`\n\n```python\nClient{signature(Client.__init__).removesuffix(' -> None')}\n```\n\n"
    return CLIENT + f"{made}{said(Client)}\n" + methods(Records, "client") + methods(Client, "client")


def methods(kind: type, called: str) -> str:
    """A section for each public method of a class."""
    page = ""
    for name, member in vars(kind).items():
        method = member.__func__ if isinstance(member, classmethod) else member
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        awaited = "await " if inspect.iscoroutinefunction(inspect.unwrap(method)) else ""
        owner = kind.__name__ if isinstance(member, classmethod) else called
        page += f"\n### `{name}`\n\n```python\n{awaited}{owner}.{name}{signature(method)}\n```\n\n{said(method)}\n"
    return page


def signature(method: Callable[..., object]) -> str:
    """The parameters as a caller writes them, without modules in front of the types."""
    found = inspect.signature(method)
    own = [parameter for key, parameter in found.parameters.items() if key not in ("self", "cls")]
    text = plainly(str(found.replace(parameters=own)))
    if len(text) <= 90:
        return text
    keyword = False
    lines = []
    for parameter in own:
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword:
            keyword = True
            lines.append("    *,")
        lines.append(f"    {parameter},")
    inner = plainly("\n".join(lines))
    return f"(\n{inner}\n){text[text.rindex(')') + 1 :]}"


def plainly(text: str) -> str:
    """A signature without modules in front of types, and without quotes around those that are imported late."""
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z_a-z])", "", re.sub(r"'([A-Z]\w*(?: \| None)?)'", r"\1", text))


def said(thing: object) -> str:
    """A docstring as one paragraph of Markdown."""
    text = " ".join((inspect.getdoc(thing) or "").split())
    return text.replace("``", "`")


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/events.md": events_page,
    "docs/reference/shapes.md": shapes_page,
    "docs/reference/python.md": python_page,
    "docs/reference/client.md": client_page,
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
