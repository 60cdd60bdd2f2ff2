"""Directives: answers that are scripted in a prompt, as ``[[bash ls]] [[text done]]``, for tests of whole programs.

The k-th directive answers the k-th request after the prompt. The directives are:

    [[text WORDS]] [[reason WORDS]] [[deltas N]] [[slow N MS]] [[length]] [[empty]] [[echo]] [[hang]] [[usage N]]
    [[tool NAME {json}]] [[tools [["NAME", {json}], ...]]] [[badargs NAME]] [[bash CMD]] [[read PATH]]
    [[write PATH|CONTENT]] [[todo a;b;c]] [[task PROMPT]]
    [[429 N]] [[500 N]] [[503 N]] [[401 N]] [[overflow N]] [[malformed N]] [[drop N]]   the first N times, default once
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from turnkeeper.model.stream import Usage
from turnkeeper.model.value import Json, encode
from turnkeeper.providers.script import DEFAULT_USAGE, Script, ScriptedAnswer

GREETING: Final = "Hello from the scripted provider."
AFTERWARDS: Final = "DONE"
TITLE: Final = "Scripted title"
SUMMARY: Final = "## Goal\nA scripted summary.\n\n## Next\nNothing is left."


@dataclass(frozen=True)
class Asked:
    """A request, independent of its protocol."""

    system: str
    prompt: str
    turns: int
    """The number of answers of the model since the prompt."""
    messages: int
    tools: tuple[str, ...]


def asked(body: Mapping[str, Json], protocol: str) -> Asked:
    """Parse the body of a request."""
    turns = list(_TURNS[protocol](body))
    said = [(role, text) for role, text in turns if role != "system"]
    prompt = max((place for place, (role, text) in enumerate(said) if role == "user" and text.strip()), default=-1)
    after = [role for role, _ in said[prompt + 1 :]]
    # Consecutive items of the model are one answer.
    answers = sum(role == "model" and (not place or after[place - 1] != "model") for place, role in enumerate(after))
    tools = tuple(_tool_names(body))
    system = "\n".join(text for role, text in turns if role == "system")
    return Asked(system, said[prompt][1] if prompt >= 0 else "", answers, len(said), tools)


def answer(request: Asked, seen: dict[str, int]) -> ScriptedAnswer:
    """The answer to a request. ``seen`` counts the faults that the server has played."""
    if not request.tools and "title" in request.system.lower():
        return Script().says(TITLE).take()
    if not request.tools and re.search(r"summar|compact", request.system + request.prompt, re.IGNORECASE):
        return Script().says(SUMMARY).take()
    script = list(directives(request.prompt))
    while script and script[0][0] in _FAULTS:
        name, argument = script.pop(0)
        key = f"{name} {request.prompt}"
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= int(argument or 1):
            return _FAULTS[name](Script()).take()
    counts = [int(argument or 1000) for name, argument in script if name == "usage"]
    steps = [(name, argument) for name, argument in script if name != "usage"]
    played = _step(request, steps)
    if counts:
        played.usage = Usage(input=counts[-1], output=DEFAULT_USAGE.output, total=counts[-1] + DEFAULT_USAGE.output)
    return played


def directives(text: str) -> Iterator[tuple[str, str]]:
    """The names and arguments of the directives in a text. Brackets in an argument must be balanced."""
    place = text.find("[[")
    while place >= 0:
        end = _closing(text, place)
        if end is None:
            return
        name, _, argument = text[place + 2 : end - 1].strip().partition(" ")
        yield name.lower(), argument.strip()
        place = text.find("[[", end + 1)


def _closing(text: str, place: int) -> int | None:
    depth = 0
    for end in range(place, len(text)):
        depth += (text[end] == "[") - (text[end] == "]")
        if not depth:
            return end
    return None


_FAULTS: Final[Mapping[str, Callable[[Script], Script]]] = {
    "429": lambda script: script.fails(429, headers={"retry-after": "1"}),
    "500": lambda script: script.fails(500),
    "503": lambda script: script.fails(503),
    "401": lambda script: script.fails(401),
    "overflow": lambda script: script.overflows(),
    "malformed": lambda script: script.says("partial ").garbles(),
    "drop": lambda script: script.says("partial ").cuts(),
}


def _step(request: Asked, steps: list[tuple[str, str]]) -> ScriptedAnswer:
    if request.turns >= len(steps):
        return Script().says(AFTERWARDS if request.turns else GREETING).take()
    name, argument = steps[request.turns]
    script = Script()
    if name == "echo":
        facts = {"messages": request.messages, "tools": request.tools, "turns": request.turns}
        script.says(encode(facts).decode())
    elif name in _SAID:
        _SAID[name](script, argument)
    else:
        for tool, arguments in _calls(name, argument):
            script.calls_raw(tool, arguments if isinstance(arguments, str) else encode(arguments).decode())
    return script.take()


def _deltas(script: Script, argument: str) -> None:
    count = int(argument or 200)
    script.says("".join(f"{number:<6}" for number in range(count)), pieces=count)


def _slow(script: Script, argument: str) -> None:
    count, _, milliseconds = (argument or "20 200").partition(" ")
    script.paces(int(milliseconds or 200) / 1000).says("tick " * int(count))


_SAID: Final[Mapping[str, Callable[[Script, str], object]]] = {
    "text": lambda script, argument: script.says(argument),
    "reason": lambda script, argument: script.thinks(argument or "Thinking.").says("Answer after reasoning."),
    "length": lambda script, _: script.says("cut sho").finishes("length"),
    "empty": lambda script, _: script,
    "hang": lambda script, _: script.says("partial ").hangs(),
    "deltas": _deltas,
    "slow": _slow,
}


def _calls(name: str, argument: str) -> list[tuple[str, Json]]:
    """The tools to call and their arguments; a string is sent unchanged."""
    match name:
        case "bash":
            return [("bash", {"command": argument, "description": "Scripted command"})]
        case "read":
            return [("read", {"filePath": argument})]
        case "write":
            path, _, content = argument.partition("|")
            return [("write", {"filePath": path, "content": content})]
        case "todo":
            todos = [{"content": each, "status": "pending", "priority": "medium"} for each in argument.split(";")]
            return [("todowrite", {"todos": todos})]
        case "task":
            return [("task", {"description": "Scripted task", "prompt": argument, "subagent_type": "general"})]
        case "badargs":
            return [(argument or "bash", '{"oops": ')]
        case "tool":
            tool, _, raw = argument.partition(" ")
            return [(tool, raw.strip() or "{}")]
        case "tools":
            return [(str(tool), arguments) for tool, arguments in msgspec.json.decode(argument)]
        case _:
            raise ValueError(f"there is no directive {name!r}")


# --- Reading requests --------------------------------------------------------------------------------------------


def _texts(content: Json) -> str:
    """The text of a content in any protocol, without tool results."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = content.get("parts") or [content]
    found = content if isinstance(content, list) else []
    return "\n".join(
        part if isinstance(part, str) else str(part["text"])
        for part in found
        if isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))
    )


def _entries(body: Mapping[str, Json], key: str) -> list[dict[str, Json]]:
    found = body.get(key)
    if isinstance(found, str):
        return [{"role": "user", "content": found}]
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _anthropic_turns(body: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    yield "system", _texts(body.get("system"))
    for entry in _entries(body, "messages"):
        yield "user" if entry.get("role") == "user" else "model", _texts(entry.get("content"))


def _chat_turns(body: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    roles = {"assistant": "model", "developer": "system", "system": "system", "user": "user"}
    for entry in _entries(body, "messages"):
        yield roles.get(str(entry.get("role")), "tool"), _texts(entry.get("content"))


def _responses_turns(body: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    yield "system", _texts(body.get("instructions"))
    roles = {"user": "user", "system": "system", "developer": "system"}
    for entry in _entries(body, "input"):
        if str(entry.get("type", "")).endswith("_output"):
            yield "tool", ""
        else:
            yield roles.get(str(entry.get("role")), "model"), _texts(entry.get("content"))


def _gemini_turns(body: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    yield "system", _texts(body.get("systemInstruction"))
    for entry in _entries(body, "contents"):
        yield "model" if entry.get("role") == "model" else "user", _texts(entry)


def _tool_names(body: Mapping[str, Json]) -> Iterator[str]:
    for tool in _entries(body, "tools"):
        function = tool.get("function")
        for each in _entries(tool, "functionDeclarations") or [function if isinstance(function, dict) else tool]:
            yield str(each.get("name") or each.get("type"))


_TURNS: Final[Mapping[str, Callable[[Mapping[str, Json]], Iterator[tuple[str, str]]]]] = {
    "anthropic": _anthropic_turns,
    "openai-chat": _chat_turns,
    "openai-responses": _responses_turns,
    "gemini": _gemini_turns,
}
