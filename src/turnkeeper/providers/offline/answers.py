"""The offline model: a request in, the events of an answer out, by rules alone. The same request, the same answer.

It makes real tool calls for plain requests (words.py), one step a turn, and then tells what came of them.
"""

import re
from collections.abc import Iterator, Sequence
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
from turnkeeper.model.stream import (
    Finish,
    FinishStep,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Start,
    StartStep,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from turnkeeper.model.value import JsonObject, encode
from turnkeeper.providers.offline import form, report
from turnkeeper.providers.offline.words import EXAMPLES, Step, Task, Understanding, understood

HONEST: Final = "(tk-1 is a rule-based stand-in, not a language model.)"
"""The line by which every answer says what gave it."""

TITLE_CHARS_MAX: Final = 50
PIECE_CHARS: Final = 12
"""About how much comes at once."""

STRUCTURED: Final = "StructuredOutput"
"""The tool by which structured answers are given."""

_ATTACHED: Final = re.compile(r"The \w+ tool was called for the user with this input: ")
"""How the runtime announces a file that came with a prompt; its content is the text behind."""
_OTHER_NAMES: Final = {"filePath": ("path", "file_path"), "path": ("directory",), "replaceAll": ("replace_all",)}


def respond(request: ModelRequest) -> list[StreamEvent]:
    """The whole answer to a request."""
    thought, text, calls = _decided(request)
    events: list[StreamEvent] = [Start(), StartStep()]
    if thought:
        events += [ReasoningStart(id="reasoning-0"), *_thinking(thought), ReasoningEnd(id="reasoning-0")]
    if text:
        events += [TextStart(id="text-0"), *_saying(text), TextEnd(id="text-0")]
    turn = sum(isinstance(message, AssistantTurn) for message in request.messages)
    for number, (name, arguments) in enumerate(calls):
        events += _calling(f"tk1_{turn}_{number}", name, arguments)
    reason = "tool-calls" if calls else "stop"
    written = sum(len(name) + len(encode(arguments)) for name, arguments in calls)
    return [*events, FinishStep(reason=reason, usage=_usage(request, thought, text, written)), Finish()]


Decided = tuple[str, str, list[tuple[str, JsonObject]]]
"""What is thought, what is said, and which tools are called with what."""


def _decided(request: ModelRequest) -> Decided:
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
        return (
            "All steps are done; the answer must fit a form.",
            "",
            [(STRUCTURED, form.filled(tools[STRUCTURED].schema, text))],
        )
    return _reflection(meant, settled), f"{text}\n\n{HONEST}", []


# --- Reading the request -----------------------------------------------------------------------------------------


def _last_prompts(messages: Sequence[ModelMessage]) -> tuple[list[str], Sequence[ModelMessage]]:
    """What the user asked since the last answer, and what came after it. Prompts may be taken up together."""
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
    """The messages of the user, newest first."""
    return (message for message in reversed(messages) if isinstance(message, UserTurn))


def _words_of(message: UserTurn) -> str:
    """The user's own words: not the files that came with them, which are announced by a line."""
    texts = [part.text.strip() for part in message.content if isinstance(part, Text) and part.text.strip()]
    own = [
        text
        for before, text in zip(("", *texts), texts, strict=False)
        if not _ATTACHED.match(text) and not _ATTACHED.match(before)
    ]
    words = (own or texts or [""])[0]
    # opencode's command line puts quotation marks around its message.
    return words[1:-1].strip() if len(words) > 2 and words[0] == words[-1] == '"' and '"' not in words[1:-1] else words


def _settled(messages: Sequence[ModelMessage]) -> Iterator[tuple[Call, Result]]:
    """The calls with their results, in the order of the calls."""
    results = {result.call_id: result for turn in messages if isinstance(turn, ToolTurn) for result in turn.results}
    for turn in messages:
        if isinstance(turn, AssistantTurn):
            for part in turn.content:
                if isinstance(part, Call) and part.id in results:
                    yield part, results[part.id]


def _asks_for_title(request: ModelRequest) -> bool:
    return any(re.search(r"\btitle\b", text, re.IGNORECASE) for text in request.system)


def _asks_for_summary(request: ModelRequest, asked: str) -> bool:
    return (
        re.search(
            r"summar|compact|continu\w+ (?:our|this|the) conversation",
            " ".join((*request.system, asked)),
            re.IGNORECASE,
        )
        is not None
    )


# --- Saying something --------------------------------------------------------------------------------------------


def title(prompt: str) -> str:
    """A few words of the prompt, as a title."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    line = re.sub(
        r"^(?:please|can you|could you)\s+", "", re.sub(r"\s+", " ", line).strip("`#*- "), flags=re.IGNORECASE
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
        return f"{len(settled)} results are in; what they say is told."
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
    """What was asked and which tools were used: enough to go on by."""
    asked = [
        part.text.strip()
        for turn in messages
        if isinstance(turn, UserTurn)
        for part in turn.content[:1]
        if isinstance(part, Text)
    ]
    calls = [
        part for turn in messages if isinstance(turn, AssistantTurn) for part in turn.content if isinstance(part, Call)
    ]
    goals = "\n".join(f"- {title(text)}" for text in asked[:-1][-20:]) or "- nothing yet"
    used = "\n".join(f"- {report.named(call)}" for call in calls[-20:]) or "- nothing yet"
    return f"## Asked\n{goals}\n\n## Done\n{used}\n\n{HONEST}"


# --- Arguments and events ----------------------------------------------------------------------------------------


def _arguments(task: Task, tool: ToolDefinition) -> JsonObject:
    """The arguments under the names this tool has for them; those it does not know are left out."""
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


def _thinking(text: str) -> Iterator[StreamEvent]:
    return (ReasoningDelta(id="reasoning-0", text=piece) for piece in _pieces(text))


def _saying(text: str) -> Iterator[StreamEvent]:
    return (TextDelta(id="text-0", text=piece) for piece in _pieces(text))


def _calling(call_id: str, name: str, arguments: JsonObject) -> list[StreamEvent]:
    raw = encode(arguments).decode()
    pieces = (raw[start : start + 4 * PIECE_CHARS] for start in range(0, len(raw), 4 * PIECE_CHARS))
    return [
        ToolInputStart(id=call_id, name=name),
        *(ToolInputDelta(id=call_id, text=piece) for piece in pieces),
        ToolInputEnd(id=call_id),
        ToolCall(id=call_id, name=name, input=arguments, raw=raw),
    ]


def _usage(request: ModelRequest, thought: str, text: str, written: int) -> Usage:
    """Four characters count as a token."""
    tools = sum(len(tool.name) + len(tool.description) + len(encode(tool.schema)) for tool in request.tools)
    asked = sum(map(len, request.system)) + sum(map(_length, request.messages)) + tools
    read, thinking = -(-asked // 4), -(-len(thought) // 4)
    output = thinking + -(-(len(text) + written) // 4)
    return Usage(input=read, output=output, reasoning=thinking, total=read + output)


def _length(message: ModelMessage) -> int:
    """The characters of a message that a model would read."""
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
