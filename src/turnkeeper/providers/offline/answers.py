"""The offline model: makes the events of an answer by deterministic rules.

It makes real tool calls for plain requests (``words``), one step a turn, and then reports their results.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final, assert_never

from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Result,
    SystemTurn,
    Text,
    ToolDefinition,
    ToolTurn,
    UserTurn,
)
from turnkeeper.model.stream import Start, StartStep, StreamEvent, Usage
from turnkeeper.model.value import JsonObject, encode
from turnkeeper.providers.answer import AnswerStream
from turnkeeper.providers.offline import form, report
from turnkeeper.providers.offline.words import EXAMPLES, Step, Task, Understanding, understood

HONEST: Final = "(tk-1 is a rule-based stand-in, not a language model.)"
"""The last line of every answer."""

TITLE_CHARS_MAX: Final = 50
PIECE_CHARS: Final = 12
"""Characters of text or reasoning in one delta, rounded up to whole words."""
INPUT_PIECE: Final = 48
"""Characters of a tool call's input in one delta."""

STRUCTURED: Final = "StructuredOutput"
"""The tool for structured answers."""

_ATTACHED: Final = re.compile(r"The \w+ tool was called for the user with this input: ")
"""The runtime's announcement of a file attached to a prompt; the next text is the file's content."""
_SUMMARY: Final = re.compile(r"summar|compact|continu\w+ (?:our|this|the) conversation", re.IGNORECASE)
_SAID: Final = re.compile(r"^\[User\]: (.*)", re.MULTILINE)
_CALLED: Final = re.compile(r"^\[Assistant tool call\]: ([^\s(]+)\((\{.*\})\)$", re.MULTILINE)
_OTHER_NAMES: Final = {"filePath": ("path", "file_path"), "path": ("directory",), "replaceAll": ("replace_all",)}


def respond(request: ModelRequest) -> list[StreamEvent]:
    """The events of the answer to a request."""
    thought, text, calls = _decided(request)
    answer = AnswerStream()
    for piece in _pieces(thought):
        answer.reasoning("reasoning-0", piece)
    answer.close_reasoning("reasoning-0")
    for piece in _pieces(text):
        answer.text("text-0", piece)
    answer.close_text("text-0")
    turn = sum(isinstance(message, AssistantTurn) for message in request.messages)
    written = 0
    for number, (name, arguments) in enumerate(calls):
        call_id, raw = f"tk1_{turn}_{number}", encode(arguments).decode()
        answer.open_call(call_id, name)
        for start in range(0, len(raw), INPUT_PIECE):
            answer.call_input(call_id, raw[start : start + INPUT_PIECE])
        answer.close_call(call_id)
        written += len(name) + len(raw.encode())
    answer.usage = _usage(request, thought, text, written)
    answer.finish("tool-calls" if calls else "stop")
    return [Start(), StartStep(), *answer.take()]


def _decided(request: ModelRequest) -> tuple[str, str, list[tuple[str, JsonObject]]]:
    """The reasoning, the text, and the tool calls as names and arguments."""
    asked, after = _last_prompts(request.messages)
    if not request.tools and _asks_for_title(request):
        return "", title(next(filter(None, map(_words_of, _prompts(request.messages))), "")), []
    if not request.tools and _asks_for_summary(request, " ".join(asked)):
        return "", _summary(request.messages), []
    each = [understood(words) for words in asked]
    meant = Understanding(
        steps=tuple(step for one in each for step in one.steps),
        missed=tuple(words for one in each for words in one.missed),
    )
    settled = list(_settled(after))
    done = sum(
        any(isinstance(part, Call) for part in turn.content) for turn in after if isinstance(turn, AssistantTurn)
    )
    tools = {} if request.tool_choice == "none" else {tool.name: tool for tool in request.tools}
    if done < len(meant.steps) and not any(result.is_error for _, result in settled):
        step = meant.steps[done]
        if all(task.tool in tools for task in step):
            thought = f"Step {done + 1} of {len(meant.steps)}: {step[0].saying.lower()}."
            return thought, _announced(step), [(task.tool, _arguments(task, tools[task.tool])) for task in step]
    text = _told(meant, done, settled, tools)
    if request.tool_choice == "required" and STRUCTURED in tools:
        filled = form.filled(tools[STRUCTURED].schema, text)
        return "All steps are done; the answer must fit a form.", "", [(STRUCTURED, filled)]
    return _reflection(meant, settled), f"{text}\n\n{HONEST}", []


# --- Reading the request -----------------------------------------------------------------------------------------


def _last_prompts(messages: Sequence[ModelMessage]) -> tuple[list[str], Sequence[ModelMessage]]:
    """The texts of the user turns since the last assistant turn, and the messages after them."""
    asked: list[str] = []
    end = 0
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserTurn):
            if words := _words_of(message):
                asked.insert(0, words)
                end = end or index + 1
        elif asked and not isinstance(message, SystemTurn):
            break
    return asked, messages[end:] if asked else ()


def _prompts(messages: Sequence[ModelMessage]) -> Iterator[UserTurn]:
    """The user turns, newest first."""
    return (message for message in reversed(messages) if isinstance(message, UserTurn))


def _words_of(message: UserTurn) -> str:
    """The user's text, without attached files and their announcements."""
    # An image keeps its place, as None: what follows it is not the content of the file that was announced before it.
    every = [part.text.strip() if isinstance(part, Text) else None for part in message.content]
    every = [text for text in every if text != ""]
    texts = [text for text in every if text]
    own = [
        text
        for before, text in pairwise((None, *every))
        if text and not _ATTACHED.match(text) and not _ATTACHED.match(before or "")
    ]
    words = (own or texts or [""])[0]
    # opencode's command line encloses its message in quotation marks.
    return words[1:-1].strip() if len(words) > 2 and words[0] == words[-1] == '"' and '"' not in words[1:-1] else words


def _settled(messages: Sequence[ModelMessage]) -> Iterator[tuple[Call, Result]]:
    """The calls with a result, in the order of the calls."""
    results = {result.call_id: result for turn in messages if isinstance(turn, ToolTurn) for result in turn.results}
    for turn in messages:
        if isinstance(turn, AssistantTurn):
            for part in turn.content:
                if isinstance(part, Call) and part.id in results:
                    yield part, results[part.id]


def _asks_for_title(request: ModelRequest) -> bool:
    return any(re.search(r"\btitle\b", text, re.IGNORECASE) for text in request.system)


def _asks_for_summary(request: ModelRequest, asked: str) -> bool:
    return _SUMMARY.search(" ".join((*request.system, asked))) is not None


# --- Saying something --------------------------------------------------------------------------------------------


def title(prompt: str) -> str:
    """A title made from the first line of the prompt."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    line = re.sub(
        r"^(?:please|can you|could you)\s+", "", re.sub(r"\s+", " ", line).lstrip("#*- ").rstrip(), flags=re.IGNORECASE
    )
    if len(line) > TITLE_CHARS_MAX:
        line = line[:TITLE_CHARS_MAX].rsplit(" ", 1)[0]
    line = line.rstrip(" .,:;?!")
    return line[:1].upper() + line[1:] if line else "Untitled"


def _announced(step: Step) -> str:
    first, *others = (task.saying for task in step)
    return f"{' and '.join([first, *map(_lower, others)])}."


def _lower(saying: str) -> str:
    return saying[:1].lower() + saying[1:]


def _reflection(meant: Understanding, settled: list[tuple[Call, Result]]) -> str:
    if settled:
        count = len(settled)
        return (
            f"{count} results are in; what they say is told."
            if count > 1
            else "The result is in; what it says is told."
        )
    return "" if meant.steps else "No rule fits this request, so the honest answer is what would fit."


def _told(meant: Understanding, done: int, settled: list[tuple[Call, Result]], tools: dict[str, ToolDefinition]) -> str:
    if not meant.steps and not settled:
        examples = "\n".join(f"- {example}" for example in EXAMPLES)
        return f"I did not understand that. I follow plain requests, also several joined by “then”:\n\n{examples}"
    made = [task for step in meant.steps[:done] for task in step]
    asked = [task.is_asked for task in made] if len(made) == len(settled) else [True] * len(settled)
    told = [
        report.told(call, result)
        for (call, result), is_asked in zip(settled, asked, strict=True)
        if is_asked or result.is_error
    ]
    left = [task for step in meant.steps[done:] for task in step]
    if left:
        told.append(_why_left(left, tools))
    if meant.missed:
        told.append(f"I did not understand: {'; '.join(meant.missed)}")
    return "\n\n".join(told) or "Done."


def _why_left(left: list[Task], tools: dict[str, ToolDefinition]) -> str:
    missing = sorted({task.tool for task in left} - set(tools))
    why = f"I have no tool `{missing[0]}` here" if missing else "I stopped after the error"
    return f"{why}; not done: {', '.join(_lower(task.saying) for task in left)}."


def _summary(messages: Sequence[ModelMessage]) -> str:
    """A Summary: the user's requests and the tools that were called, as the conversation in the prompt has them."""
    conversation = "\n".join(map(_words_of, _prompts(messages)))
    said = ["", *_SAID.findall(conversation)]
    asked = [text for before, text in pairwise(said) if not _ATTACHED.match(text) and not _ATTACHED.match(before)]
    calls = list(_calls_in(conversation))
    goals = "\n".join(f"- {title(text)}" for text in asked[-20:]) or "- nothing yet"
    used = "\n".join(f"- {report.named(call)}" for call in calls[-20:]) or "- nothing yet"
    return f"## Asked\n{goals}\n\n## Done\n{used}\n\n{HONEST}"


def _calls_in(conversation: str) -> Iterator[Call]:
    for name, arguments in _CALLED.findall(conversation):
        with suppress(ValueError):  # The end of a long call is cut off.
            yield Call(id="", name=name, input=json.loads(arguments))


# --- Arguments and events ----------------------------------------------------------------------------------------


def _arguments(task: Task, tool: ToolDefinition) -> JsonObject:
    """The arguments under the names in the tool's schema, without those that are not in it."""
    properties = tool.schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return dict(task.arguments)
    named = {}
    for name, value in task.arguments.items():
        known = next((other for other in (name, *_OTHER_NAMES.get(name, ())) if other in properties), None)
        if known is not None:
            named[known] = value
    return named


def _pieces(text: str) -> Iterator[str]:
    piece = ""
    for word in re.findall(r"\s*\S+\s*|\s+", text):
        piece += word
        if len(piece) >= PIECE_CHARS:
            yield piece
            piece = ""
    if piece:
        yield piece


def _usage(request: ModelRequest, thought: str, text: str, written: int) -> Usage:
    """The usage, at four characters a token."""
    tools = sum(len(tool.name) + len(tool.description) + len(encode(tool.schema)) for tool in request.tools)
    asked = sum(map(len, request.system)) + sum(map(_length, request.messages)) + tools
    read, thinking = -(-asked // 4), -(-len(thought) // 4)
    output = thinking + -(-(len(text) + written) // 4)
    return Usage(input=read, output=output, reasoning=thinking, total=read + output)


def _length(message: ModelMessage) -> int:
    """The number of characters in a message."""
    match message:
        case UserTurn(content=content):
            return sum(len(part.text) for part in content if isinstance(part, Text))
        case ToolTurn(results=results):
            return sum(len(part.text) for result in results for part in result.output if isinstance(part, Text))
        case AssistantTurn(content=parts):
            texts = sum(len(part.text) for part in parts if isinstance(part, Text | Reasoning))
            return texts + sum(len(part.name) + len(encode(part.input)) for part in parts if isinstance(part, Call))
        case SystemTurn(text=text):
            return len(text)
        case _:
            assert_never(message)
