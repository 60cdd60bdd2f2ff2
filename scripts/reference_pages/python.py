"""The pages about the Python interface and the client of a server."""

import inspect
from collections.abc import Callable
from types import UnionType
from typing import Literal, get_args, get_origin

import msgspec

import turnkeeper
import turnkeeper.testing
from reference_pages.wording import plainly, said, signature, words
from turnkeeper.api import Turnkeeper, named_types
from turnkeeper.client import Client
from turnkeeper.client.records import Records
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import Message
from turnkeeper.model.notification import KINDS
from turnkeeper.model.parts import Part
from turnkeeper.model.session import Session
from turnkeeper.model.todo import Todo
from turnkeeper.providers.script import Script
from turnkeeper.sessions.past import PastSession

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
  nothing was changed. The message says what to do. An unknown session is `NotFound` in every method
  but `subscribe`, which may name a session that is created later.
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


SMALLER_VALUES = """
## Values in brief

What the signatures and values above name besides.

| Class | Has | Meaning |
|---|---|---|
"""


NOTIFICATIONS_OF_PYTHON = """
## Notifications

What `subscribe` gives, for `match`. Each has `session_id` and `directory`; the seq of its event is in `seq`.

| Class | Has | Meaning |
|---|---|---|
"""


TESTING = """
## Tests

`turnkeeper.testing` has `recorded`, which raises `RecordingChanged`; `replay_check`, for recordings of
`turnkeeper models test`; `Scripted`, a model in this process that plays a script; `ScriptedServer`, the same over HTTP
in four wire protocols; and `Gate`, which holds an answer back until a test opens it.
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


SHOWN_IN_SHAPES = (*get_args(Message), *get_args(Part), *get_args(Failure), Session, Todo)


ALIASES = {
    "AnyTool": "A tool with arguments of any type, as `tool` makes it.",
    "DamagedNames": "A `list[str]` that the names of sessions are added to which cannot be read.",
    "Failed": "A mapping that sessions are added to which could not be closed, with the reason.",
    "Function": "Any callable that `tool` makes a tool of.",
    "JsonObject": "`Mapping[str, object]`, as JSON has it.",
    "ProgressReport": "A callable that is told how far the work is: `(done, total, what)`.",
}


def python_page() -> str:
    """Every public function, method, value and notification, and a line for each other name."""
    public = {name: getattr(turnkeeper, name) for name in sorted(turnkeeper.__all__) if name != "__version__"}
    kinds = [kind for kind in reversed(Turnkeeper.__mro__) if kind.__module__.startswith("turnkeeper.api.")]
    notifications = {name: one for name, one in public.items() if one in KINDS.values()}
    values = {name: one for name, one in public.items() if is_value(one) and name not in notifications}
    brief = {name: values.pop(name) for name in sorted(vars(named_types)) if name in values}
    functions = {name: one for name, one in public.items() if inspect.isfunction(one)}
    shown = {*functions, *values, *brief, *notifications}
    others = {name: one for name, one in public.items() if name not in shown}
    return (
        PYTHON
        + "".join(function(name, one) for name, one in functions.items())
        + METHODS
        + "".join(methods(kind, "tk") for kind in kinds)
        + VALUES
        + "".join(value(name, one) for name, one in values.items())
        + reader(PastSession)
        + SMALLER_VALUES
        + "".join(brief_row(name, one) for name, one in brief.items())
        + NOTIFICATIONS_OF_PYTHON
        + "".join(notification_row(one) for one in notifications.values())
        + OTHER_NAMES
        + "".join(f"| `{name}` | {meaning(name, one)} |\n" for name, one in others.items())
        + TESTING
        + function("recorded", turnkeeper.testing.recorded, "turnkeeper.testing")
        + function("replay_check", turnkeeper.testing.replay_check, "turnkeeper.testing")
        + SCRIPTED
        + methods(Script, "script")
    )


def is_value(thing: object) -> bool:
    """Whether it is a value with fields that no other page shows."""
    elsewhere = (msgspec.Struct, *SHOWN_IN_SHAPES)
    return isinstance(thing, type) and issubclass(thing, msgspec.Struct) and thing not in elsewhere


def function(name: str, called: Callable[..., object], package: str = "turnkeeper") -> str:
    """A section for a public function."""
    awaited = "await " if inspect.iscoroutinefunction(inspect.unwrap(called)) else ""
    shown = f"{awaited}{package}.{name}{signature(called)}"
    return f"\n### `{package}.{name}`\n\n```python\n{shown}\n```\n\n{said(called)}\n"


def notification_row(kind: type) -> str:
    """The line of a notification."""
    own = [name for name, one in vars(kind).items() if isinstance(one, property)]
    return f"| `{kind.__name__}` | {', '.join(f'`{name}`' for name in own) or 'nothing more'} | {said(kind)} |\n"


def brief_row(name: str, kind: type) -> str:
    """The line of a value that is named by others."""
    fields = ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(kind))
    return f"| `{name}` | {fields or 'nothing'} | {meaning(name, kind)} |\n"


def meaning(name: str, thing: object) -> str:
    """One line about a name that has no section."""
    if isinstance(thing, type):
        return said(thing).partition(". ")[0].rstrip(".").replace("|", "\\|") + "."
    if isinstance(thing, UnionType):
        return "One of " + ", ".join(f"`{public_name(one)}`" for one in get_args(thing)) + "."
    if get_origin(thing) is Literal:
        return "One of " + ", ".join(f"`'{word}'`" for word in get_args(thing)) + "."
    return ALIASES[name]


def reader(kind: type) -> str:
    """What an object of Python can be asked for."""
    asked = [(name, one) for name, one in vars(kind).items() if inspect.isfunction(one) and not name.startswith("_")]
    asked_for = [(name + " ".join(signature(one).split()).replace("|", "\\|"), said(one)) for name, one in asked]
    rows = "".join(f"| `{call}` | {answer} |\n" for call, answer in asked_for)
    return f"\n### `{kind.__name__}`\n\n`{kind.__module__}`. {said(kind)}\n\n| Method | Answer |\n|---|---|\n{rows}"


def public_name(kind: type) -> str:
    """The name of a class in ``turnkeeper``, which need not be its own."""
    return next((name for name in turnkeeper.__all__ if getattr(turnkeeper, name) is kind), kind.__name__)


def value(public: str, kind: type) -> str:
    """What a value of Python holds, under the names of Python."""
    hints = {name: hint for base in reversed(kind.__mro__) for name, hint in inspect.get_annotations(base).items()}
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    kinds = {turnkeeper.Status: "`Status`"}  # Its classes have other names there.
    rows = "".join(
        f"| `{name}`{'' if fields[name].required else '?'} | {kinds.get(hint) or plainly(words(hint))} |\n"
        for name, hint in hints.items()
        if name in fields
    )
    table = f"\n| Field | Type |\n|---|---|\n{rows}" if rows else ""
    return f"\n### `{public}`\n\n{said(kind)}\n{table}"


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
