"""Summary: what a summariser is asked, what a Summary must hold, and what replaces an answer that cannot be used.

Code checks a Summary and adds the facts it lacks. Without a usable answer a digest is made from the history by code,
so that a session can always go on.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from turnkeeper.core.handles import HANDLE, handle, handles_in, whole_output
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.window import CHARS_PER_TOKEN, estimate
from turnkeeper.model.failure import Failure, words_of
from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import FilePart, PatchPart, ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value, encode

RESULT_CHARS_MAX: Final = 2_000
"""How much of a tool's result the summariser reads."""
TARGET_MAX: Final = 4_096
TARGET_MIN: Final = 256
TARGET_SHARE: Final = 6
"""A Summary may take a sixth of the usable window, within these bounds (tokens)."""
FILES_MAX: Final = 40
HANDLES_MAX: Final = 20
EXCERPTS_MAX: Final = 12
EXCERPT_CHARS: Final = 240
FRAME_CHARS: Final = 10
"""What a line of a digest has around a fact, at the most."""
EXACT: Final = "## Kept Exactly"
EMPTY: Final = "it is empty"


class Contract(Value):
    """What a Summary must hold, so that work can go on from it alone."""

    tokens_max: int
    request: str = ""
    """The user's last request, to be found word for word; empty if it stays in the history beside the Summary."""
    todos: tuple[str, ...] = ()
    plan: str | None = None
    """The file that holds the plan being followed."""
    files: tuple[str, ...] = ()
    handles: frozenset[str] = frozenset()
    """The recall handles that were seen; a Summary may name no other."""

    @property
    def facts(self) -> tuple[str, ...]:
        """The words that must be found."""
        return tuple(one for one in (self.request, *self.todos, self.plan or "", *self.files) if one)


def target(room: int | None, head: int) -> int:
    """How long a Summary may be, in tokens: never longer than what it replaces, if that is worth a Summary at all."""
    share = min(TARGET_MAX, room // TARGET_SHARE) if room is not None else TARGET_MAX
    return max(TARGET_MIN, min(share, head))


def verbatim(texts: Sequence[str], previous: str | None) -> str:
    """A Summary of a history that is shorter than any summary of it: the history itself, as text."""
    return "\n\n".join(one for one in (previous, *texts) if one)


def contract(
    head: Sequence[HistoryItem],
    kept: Sequence[HistoryItem],
    todos: Sequence[Todo],
    tokens_max: int,
    previous: str | None = None,
) -> Contract:
    """What must not be lost of ``head``. What is ``kept`` beside the Summary need not be in it."""
    is_kept = any(isinstance(entry.message, UserMessage) and _asked(entry) for entry in kept)
    files = _files_touched(head)
    plans = [name for name in files if "plans/" in name and name.endswith(".md")]
    terms = Contract(
        tokens_max=tokens_max,
        request="" if is_kept else _fitting_request(head, tokens_max),
        todos=_within([one.content for one in todos if one.status not in ("completed", "cancelled")], tokens_max // 5),
        plan=next(iter(_within(plans[-1:], tokens_max // 5)), None),
        files=_within(files[-FILES_MAX:], tokens_max // 5),
    )
    seen = (*(serialise(entry) for entry in head), *terms.facts, previous or "")
    named = (one for entry in head for one in _handles(entry))
    return terms.but(handles=frozenset((*named, *(one for text in seen for one in handles_in(text)))))


def breaches(summary: str, terms: Contract) -> list[str]:
    """How a Summary falls short of its contract; empty if work can go on from it."""
    if not summary.strip():
        return [EMPTY]
    found: list[str] = []
    if estimate(summary) > terms.tokens_max:
        found.append(f"it is longer than {terms.tokens_max} tokens (about {terms.tokens_max * 3 // 4} words)")
    if terms.request and terms.request not in summary:
        found.append("the user's last request is not in it word for word")
    found.extend(f"the open task is missing: {todo}" for todo in terms.todos if todo not in summary)
    if terms.plan and terms.plan not in summary:
        found.append(f"the plan's path is missing: {terms.plan}")
    found.extend(f"the file is missing: {name}" for name in terms.files if name not in summary)
    unknown = [one for one in handles_in(summary) if one not in terms.handles]
    found.extend(f"the recall handle {one} does not exist" for one in unknown)
    return found


def completed(summary: str, terms: Contract) -> str:
    """A summariser's text as a Summary that keeps its contract.

    Code adds the facts that are missing, takes out handles that do not exist, and cuts a text that is too long.
    """
    known = _known_handles(summary.strip(), terms)
    missing = [fact for fact in terms.facts if fact not in known]
    added = "\n".join(["", "", EXACT, *(f"- {fact}" for fact in missing)]) if missing else ""
    room = terms.tokens_max * CHARS_PER_TOKEN - len(added)
    if len(known) > room:
        # Facts that stood in what is cut are missing again: all of them are added.
        added = "\n".join(["", "", EXACT, *(f"- {fact}" for fact in terms.facts)]) if terms.facts else ""
        known = _known_handles(cut(known, terms.tokens_max * CHARS_PER_TOKEN - len(added)), terms)
    return f"{known}{added}"


def unusable(failure: Failure | None, text: str, *, is_call: bool) -> str | None:
    """Why an answer is no Summary; None if it is one."""
    if failure is not None:
        return words_of(failure)
    if text.strip():
        return None
    return "the summariser called tools instead of answering" if is_call else "the summariser said nothing"


def folded(said: str, previous: str | None, piece: str, terms: Contract) -> str:
    """What is known after one more piece of a history that is too long to read at once. Cut, unless summarised."""
    if said.strip() and estimate(said) <= terms.tokens_max:
        return said.strip()
    return cut("\n\n".join(one for one in (previous, piece) if one), terms.tokens_max * CHARS_PER_TOKEN)


def final_text(
    said: str | None, terms: Contract, head: Sequence[HistoryItem], previous: str | None, plain: str, *, tokens_max: int
) -> str:
    """The text of a Summary: what a model ``said``, completed where facts are missing; a digest if that is None.

    If it would be longer than ``tokens_max``, the size of what it replaces, the ``plain`` history may take its place.
    """
    if said is None:
        found = digest(terms, previous, head)
    else:
        found = said.strip() if not breaches(said.strip(), terms) else completed(said, terms)
    return found if estimate(found) <= tokens_max else min(found, completed(plain, terms), key=len)


def digest(terms: Contract, previous: str | None, head: Sequence[HistoryItem]) -> str:
    """A Summary made without a model: what the contract demands, then what was said, as far as there is room."""
    state = [*(f"- open: {todo}" for todo in terms.todos), *([f"- plan: {terms.plan}"] if terms.plan else [])]
    sections = [
        ("## Objective", [terms.request or "The request is in the messages that follow."]),
        ("## Work State", state),
        ("## Relevant Files", [f"- {name}" for name in terms.files]),
        ("## Important Details", ["Made without a model. Call recall for what is not here."]),
    ]
    text = "\n\n".join("\n".join([heading, *lines]) for heading, lines in sections if lines)
    details = cut("\n".join(_details(previous, head)), terms.tokens_max * CHARS_PER_TOKEN - len(text) - 2)
    details = _known_handles(details, terms)
    return f"{text}\n{details}" if details else text


def serialise(entry: HistoryItem) -> str:
    """A message as text for the summariser: who said what, calls with their input, results cut short."""
    return "\n".join(_lines(entry))


def chunks(texts: Sequence[str], chars_max: int) -> list[str]:
    """Texts put together into pieces that a summariser can take at once; one that is too long is cut."""
    found: list[str] = []
    for text in texts:
        one = cut(text, chars_max)
        if one and found and len(found[-1]) + len(one) + 2 <= chars_max:
            found[-1] = f"{found[-1]}\n\n{one}"
        elif one:
            found.append(one)
    return found


def question(conversation: str, previous: str | None, terms: Contract | None, context: Sequence[str] = ()) -> str:
    """What the summariser is asked, once the instructions have told it how. ``context`` comes from hooks."""
    blocks = [f"<prior-summary>\n{previous}\n</prior-summary>"] if previous else []
    blocks.append(f"<conversation>\n{conversation}\n</conversation>")
    blocks.extend(context)
    if terms is not None:
        blocks.append(_demands(terms))
    return "\n\n".join(blocks)


def _known_handles(text: str, terms: Contract) -> str:
    """A text without handles that do not exist. A longer word that was cut may look like one."""
    return HANDLE.sub(lambda found: found[0] if found[0] in terms.handles else "[...]", text)


def _demands(terms: Contract) -> str:
    lines = [f"The summary has at most {terms.tokens_max} tokens. These words stand in it exactly as they are here:"]
    lines += [f"<last-request>\n{terms.request}\n</last-request>"] if terms.request else []
    lines += [f"- open task: {todo}" for todo in terms.todos]
    lines += [f"- plan: {terms.plan}"] if terms.plan else []
    lines += [f"- file: {name}" for name in terms.files]
    lines.append("Handles, an r and ten hex digits, may be quoted where the text behind them matters; invent none.")
    return "\n".join(lines)


def _details(previous: str | None, head: Sequence[HistoryItem]) -> Iterator[str]:
    if previous:
        yield previous
    said = [text for entry in head for text in _spoken(entry)]
    yield from (f"- {cut(text, EXCERPT_CHARS)}" for text in said[-EXCERPTS_MAX:])
    named = [one for entry in head for one in _handles(entry)]
    yield from (f"- recall {one}" for one in named[-HANDLES_MAX:])


def _spoken(entry: HistoryItem) -> Iterator[str]:
    who = "user" if isinstance(entry.message, UserMessage) else "assistant"
    for part in entry.parts:
        if isinstance(part, TextPart) and part.text.strip() and not part.synthetic and not part.ignored:
            yield f"{who}: {' '.join(part.text.split())}"


def _lines(entry: HistoryItem) -> Iterator[str]:
    who = "User" if isinstance(entry.message, UserMessage) else "Assistant"
    for part in entry.parts:
        match part:
            case TextPart(text=text, ignored=ignored) if text.strip() and not ignored:
                yield f"[{who}]: {text}"
            case ReasoningPart(text=text) if text.strip():
                yield f"[Assistant reasoning]: {text}"
            case FilePart(mime=mime, filename=filename):
                yield f"[Attached {mime}: {filename or 'file'}]"
            case ToolPart():
                yield f"[Assistant tool call]: {part.tool}({encode(part.state.input).decode()})"
                yield from _result_lines(part)
            case _:
                pass


def _result_lines(part: ToolPart) -> Iterator[str]:
    match part.state:
        case ToolCompleted(output=output, attachments=attachments):
            text = whole_output(part.state)
            if len(text) <= RESULT_CHARS_MAX:
                yield f"[Tool result]: {output}"
            else:
                yield f"[Tool result {handle(text)}]: {text[:RESULT_CHARS_MAX]} [truncated]"
            yield from (f"[Attached {file.mime}: {file.filename or 'file'}]" for file in attachments or ())
        case ToolError(error=error):
            yield f"[Tool error]: {error}"
        case _:
            pass


def _handles(entry: HistoryItem) -> Iterator[str]:
    """The handles by which a summariser can name texts that it saw cut."""
    for part in entry.parts:
        if isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted):
            text = whole_output(part.state)
            if len(text) > RESULT_CHARS_MAX:
                yield handle(text)
        elif isinstance(part, TextPart):
            yield from handles_in(part.text)
            if len(part.text) > RESULT_CHARS_MAX:
                yield handle(part.text)


def _asked(entry: HistoryItem) -> str:
    """What the user said themselves in a message."""
    return "\n\n".join(_own_words(entry))


def _own_words(entry: HistoryItem) -> list[str]:
    said = [part for part in entry.parts if isinstance(part, TextPart) and not part.synthetic and not part.ignored]
    return [part.text for part in said if part.text.strip()]


def _fitting_request(head: Sequence[HistoryItem], tokens_max: int) -> str:
    """The last request word for word; one that would fill the Summary by itself, as its handle."""
    users = [entry for entry in head if isinstance(entry.message, UserMessage) and _asked(entry)]
    if not users:
        return ""
    asked = _asked(users[-1])
    if estimate(asked) <= tokens_max // 4:
        return asked
    return handle(max(_own_words(users[-1]), key=len))


def _files_touched(head: Sequence[HistoryItem]) -> list[str]:
    """The files that were changed, in the order in which each was last."""
    touched: dict[str, None] = {}
    for entry in head:
        for part in entry.parts:
            names: Sequence[object] = ()
            if isinstance(part, PatchPart):
                names = part.files
            elif isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted):
                names = _changed_by(part.tool, part.state)
            for name in names:
                if isinstance(name, str) and name:
                    touched.pop(name, None)
                    touched[name] = None
    return list(touched)


def _changed_by(tool: str, state: ToolCompleted) -> Sequence[object]:
    """The files that a call changed."""
    if tool in ("write", "edit", "multiedit"):
        return (state.input.get("filePath"),)
    files = state.metadata.get("files")
    if tool != "apply_patch" or not isinstance(files, list | tuple):
        return ()
    return [one.get("movePath") or one.get("filePath") for one in files if isinstance(one, dict)]


def _within(words: Sequence[str], tokens_max: int) -> tuple[str, ...]:
    """The newest of these that fit."""
    kept: list[str] = []
    left = tokens_max * CHARS_PER_TOKEN
    for one in reversed(words):
        left -= len(one) + FRAME_CHARS
        if left < 0:
            break
        kept.append(one)
    return tuple(reversed(kept))


def cut(text: str, chars_max: int) -> str:
    """A text within a size: its beginning and its end, for the end is what came last."""
    if len(text) <= chars_max:
        return text
    mark = " [...] "
    half = max(0, chars_max - len(mark)) // 2
    return f"{text[:half]}{mark}{text[len(text) - half :]}" if half else ""
