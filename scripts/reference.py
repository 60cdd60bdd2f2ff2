"""Write the reference pages that are derived from the code alone: events, shapes, tools and the Python interface.

``make check`` fails when one of them differs from what this would write.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import msgspec

import turnkeeper
import turnkeeper.testing
from turnkeeper.api import Turnkeeper
from turnkeeper.client import Client
from turnkeeper.client.records import Records
from turnkeeper.model import event
from turnkeeper.model.event import Event
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import Message
from turnkeeper.model.notification import KINDS
from turnkeeper.model.parts import Part
from turnkeeper.model.session import Session
from turnkeeper.model.status import Status
from turnkeeper.model.todo import Todo
from turnkeeper.providers.script import Script
from turnkeeper.sessions.past import PastSession
from turnkeeper.tools import load as load_tools
from turnkeeper.tools.tool import AnyTool

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
the log a message or a part was made. The words in parentheses (`role`, `type`, `status`, `name`) are on the wire
only: in Python they are the classes of `turnkeeper.model`, so that one asks `isinstance(message.info,
AssistantMessage)` and names fields as Python does (`session_id` for `sessionID`).

This page is written by `scripts/reference.py` from `src/turnkeeper/model`.
"""

PYTHON = """\
# Python

```python
import turnkeeper

async with turnkeeper.open("sqlite:sessions.db") as tk:
    answer = await tk.ask("What does this project do?")
    print(answer.text)
```

Everything on this page is in `turnkeeper`; no other import is needed. The [guide](../guides/python.md) shows how it
is used. `open` gives a Turnkeeper, whose methods are below. `open_sync` gives the same methods without `async`: what
is awaited here blocks there, and what is iterated over with `async for` is iterated over with `for`. When a method
that writes has returned, the write is on the disk.

This page is written by `scripts/reference.py` from `src/turnkeeper`.

## Exceptions

- `TurnFailed`: a prompt led to no answer. It has the recorded failure (`error`) and what there is of an answer
  (`answer`).
- `NotFound`, `Conflict`, `Invalid`, `Forbidden` and `Busy`, all below `Refusal`: what is asked for is refused, and
  nothing was changed. The message says what to do. An unknown session is `NotFound` in every method.
- `StoreUnavailable`, and below it `StoreFull` and `StoreDamaged`: the store cannot be used, because of the disk or
  another program, or because it is closed.
- `Damaged`: an entry of a log is not what was written; `turnkeeper doctor` says more.
- `DamagedDocument`: the same of a document. Pages leave it out, and name it in `damaged`.
- `Overflow`: a subscriber fell too far behind; read what is needed and subscribe again.

Of the methods, only `ask` and `stream` raise what went wrong in a conversation. For the others it is the `error` of a
message, or of a tool call.

## A session that is left open

A session whose process was killed stays busy in the log. `wait` then gives an outcome of the kind `abandoned`, and
`is_abandoned` says the same at once. `run` closes what was left and takes up what waits; a prompt with an `id` is
simply asked again:

```python
if (await tk.wait(session.id)).kind == "abandoned":
    await tk.run(session.id, resume=True)
```

## Functions
"""

METHODS = """
## Methods
"""

VALUES = """
## Values

What methods take and give. A question mark means that a field may be left out. [Shapes](shapes.md) has sessions,
messages, parts and failures.
"""

NOTIFICATIONS_OF_PYTHON = """
## Notifications

What `subscribe` gives, for `match`. Each has `session_id` and `directory`; the seq of its event is in `seq`.

| Class | Has | Meaning |
|---|---|---|
"""

TESTING = """
## Tests

`turnkeeper.testing` has `recorded`, which raises `RecordingChanged`; `Scripted`, a model in this process that plays a
script; `ScriptedServer`, the same over HTTP in four wire protocols; and `Gate`, which holds an answer back until a
test opens it.
"""

OTHER_NAMES = """
## Other names

| Name | Meaning |
|---|---|
"""

SCRIPTED = """
## A scripted model

`turnkeeper.testing.Scripted` is a provider for tests of your own tools and programs: it answers each request
with what the script says next. `Settings(transport=lambda endpoint: script)` has every model answered by it.

```python
from turnkeeper import Settings
from turnkeeper.testing import Scripted

script = Scripted().calls("bash", command="git status").then().says("Nothing changed.")
settings = Settings(transport=lambda endpoint: script)
```
"""

CLIENT = """\
# The client

```python
from turnkeeper.client import Client

async with Client("http://127.0.0.1:4096", password="...") as client:
    session = await client.create(title="Wind over the bay")
```

The sessions of a [server](../guides/server.md), with the methods and values of [Turnkeeper](python.md) as far as a
server serves them. What only a store keeps is not sent: `origin` of a fork is None, and `seq` of a message is 0.
Refusals are the same exceptions; `turnkeeper.client.errors` has two more: `Unreachable` if nobody answers or the
client is closed, and `Unexpected` if what answers is no server of ours or has a bug.

This page is written by `scripts/reference.py` from `src/turnkeeper/client`.
"""


TOOLS = """\
# Tools

What models may use, as they are told of it. The [guide](../guides/tools.md) tells how to add tools of your own, and
what happens before and after an edit; [permissions](config.md#permissions) decide which calls run.

Parameters are in camelCase; models may also write them with underscores, and numbers as text. An input that does not
fit fails with each violation named. A call of a tool that nobody knows fails with the nearest names and the schema of
the nearest. The output is bounded, and the rest is kept under a handle for `recall`. OpenAI's models from GPT-5 on edit
by `apply_patch`, all others by `edit`, `multiedit` and `write`.

This page is written by `scripts/reference.py` from `src/turnkeeper/tools`.
"""

MODULES = """\
# Modules

Every module of the package, written from its docstring by `scripts/reference.py`.
[ARCHITECTURE](../../ARCHITECTURE.md) has the layers.
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


SHOWN_IN_SHAPES = (*get_args(Message), *get_args(Part), *get_args(Failure), Session, Todo)


def python_page() -> str:
    """Every public function, method, value and notification, and a line for each other name."""
    public = {name: getattr(turnkeeper, name) for name in sorted(turnkeeper.__all__) if name != "__version__"}
    kinds = [kind for kind in reversed(Turnkeeper.__mro__) if kind.__module__.startswith("turnkeeper.api.")]
    notifications = {name: one for name, one in public.items() if one in KINDS.values()}
    values = {name: one for name, one in public.items() if is_value(one) and name not in notifications}
    functions = {name: one for name, one in public.items() if inspect.isfunction(one)}
    shown = {*functions, *values, *notifications}
    others = {name: one for name, one in public.items() if name not in shown}
    return (
        PYTHON
        + "".join(function(name, one) for name, one in functions.items())
        + METHODS
        + "".join(methods(kind, "tk") for kind in kinds)
        + VALUES
        + "".join(map(value, values.values()))
        + reader(PastSession)
        + NOTIFICATIONS_OF_PYTHON
        + "".join(notification_row(one) for one in notifications.values())
        + OTHER_NAMES
        + "".join(f"| `{name}` | {meaning(name, one)} |\n" for name, one in others.items())
        + TESTING
        + function("recorded", turnkeeper.testing.recorded, "turnkeeper.testing")
        + SCRIPTED
        + methods(Script, "script")
    )


def is_value(thing: object) -> bool:
    """Whether it is a value with fields that no other page shows."""
    elsewhere = (msgspec.Struct, *SHOWN_IN_SHAPES)
    return isinstance(thing, type) and issubclass(thing, msgspec.Struct) and thing not in elsewhere


def function(name: str, called: Callable[..., object], package: str = "turnkeeper") -> str:
    """A section for a public function."""
    awaited = "await " if inspect.iscoroutinefunction(called) else ""
    shown = f"{awaited}{package}.{name}{signature(called)}"
    return f"\n### `{package}.{name}`\n\n```python\n{shown}\n```\n\n{said(called)}\n"


def notification_row(kind: type) -> str:
    """The line of a notification."""
    own = [name for name, one in vars(kind).items() if isinstance(one, property)]
    return f"| `{kind.__name__}` | {', '.join(f'`{name}`' for name in own) or 'nothing more'} | {said(kind)} |\n"


def meaning(name: str, thing: object) -> str:
    """One line about a name that has no section."""
    if isinstance(thing, type):
        return said(thing).partition(". ")[0].rstrip(".").replace("|", "\\|") + "."
    if isinstance(thing, UnionType):
        return "One of " + ", ".join(f"`{one.__name__}`" for one in get_args(thing)) + "."
    return ALIASES[name]


ALIASES = {"AnyTool": "A tool with arguments of any type, as `tool` makes it."}


def reader(kind: type) -> str:
    """What an object of Python can be asked for."""
    asked = [(name, one) for name, one in vars(kind).items() if inspect.isfunction(one) and not name.startswith("_")]
    asked_for = [(name + " ".join(signature(one).split()).replace("|", "\\|"), said(one)) for name, one in asked]
    rows = "".join(f"| `{call}` | {answer} |\n" for call, answer in asked_for)
    return f"\n### `{kind.__name__}`\n\n`{kind.__module__}`. {said(kind)}\n\n| Method | Answer |\n|---|---|\n{rows}"


def value(kind: type) -> str:
    """What a value of Python holds, under the names of Python."""
    hints = {name: hint for base in reversed(kind.__mro__) for name, hint in inspect.get_annotations(base).items()}
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    rows = "".join(
        f"| `{name}`{'' if fields[name].required else '?'} | {plainly(words(hint))} |\n"
        for name, hint in hints.items()
        if name in fields
    )
    table = f"\n| Field | Type |\n|---|---|\n{rows}" if rows else ""
    return f"\n### `{kind.__name__}`\n\n{said(kind)}\n{table}"


def words(hint: object) -> str:
    """An annotation as it would be written, in a cell of a table."""
    text = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return "`" + text.replace("NoneType", "None").replace("|", "\\|") + "`"


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
    unquoted = re.sub(r"(?<=: |> )'([^']+)'", r"\1", text)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z_a-z])", "", unquoted)


def said(thing: object) -> str:
    """A docstring as one paragraph of Markdown."""
    text = " ".join((inspect.getdoc(thing) or "").split())
    return text.replace("``", "`")


def tools_page() -> str:
    """A section for each built-in tool: what models read about it, and its parameters."""
    return TOOLS + "".join(tool_section(tool) for tool in load_tools())


def tool_section(tool: AnyTool) -> str:
    """One tool."""
    facts = [f"Permission `{tool.permission}`."]
    if tool.read_only:
        facts.append("Changes no file.")
    if not tool.is_offered:
        facts.append("Not offered to models.")
    if tool.aliases:
        facts.append(f"{', '.join(f'`{other}` is taken for `{name}`' for other, name in tool.aliases.items())}.")
    properties = msgspec.convert(tool.definition().schema["properties"], dict[str, dict[str, object]])
    required = msgspec.convert(tool.definition().schema["required"], list[str])
    rows = "".join(
        f"| `{name}`{'' if name in required else '?'} | {json_type(each)} | {each['description']} |\n"
        for name, each in properties.items()
    )
    table = f"\n| Parameter | Type | Meaning |\n|---|---|---|\n{rows}" if rows else "\nIt takes no parameters.\n"
    return f"\n## `{tool.name}`\n\n{' '.join(facts)}\n\n```text\n{tool.description}\n```\n{table}"


def json_type(schema: Mapping[str, object]) -> str:
    """A type of JSON schema, in a cell of a table."""
    match schema:
        case {"enum": list(choices)}:
            return " or ".join(f"`{choice}`" for choice in choices)
        case {"type": "array", "items": {"type": "object", "properties": dict(fields)}}:
            return f"list of objects with {', '.join(f'`{name}`' for name in fields)}"
        case {"type": "array", "items": {"type": inner}}:
            return f"list of {inner}s"
        case {"type": kind}:
            return str(kind)
    raise TypeError(f"no words for the schema {schema!r}; teach json_type() some")


def modules_page() -> str:
    """Every module of the package, with the first sentence of its docstring."""
    package = Path(turnkeeper.__file__).parent
    folders: dict[str, list[Path]] = {}
    for file in sorted(package.rglob("*.py")):
        if file.name != "__init__.py":
            folders.setdefault(str(file.parent.relative_to(package)), []).append(file)
    text = MODULES
    for folder, files in sorted(folders.items()):
        title = "turnkeeper" if folder == "." else folder
        about = first_sentence(package / folder / "__init__.py") if folder != "." else ""
        rows = "".join(f"| `{file.name}` | {first_sentence(file)} |\n" for file in files)
        text += f"\n## {title}\n\n" + (f"{about}\n\n" if about else "") + f"| Module | What it is |\n|---|---|\n{rows}"
    return text


def first_sentence(file: Path) -> str:
    """The first line of a module's docstring."""
    doc = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return doc.partition("\n")[0].replace("``", "`").replace("|", "\\|")


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
