"""Summary: the request to a summariser, the contract of a Summary, and the digest that replaces an unusable answer.

Code checks a Summary and adds missing facts. Without a usable answer code makes a digest from the history, so that a
session can always go on.
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
"""Characters of a tool's result that the summariser reads."""
TARGET_MAX: Final = 4_096
TARGET_MIN: Final = 256
TARGET_SHARE: Final = 6
"""A Summary may take a sixth of the usable window, within these bounds (tokens)."""
FILES_MAX: Final = 40
HANDLES_MAX: Final = 20
EXCERPTS_MAX: Final = 12
EXCERPT_CHARS: Final = 240
FRAME_CHARS: Final = 10
"""Characters that a line of a digest has around a fact, at most."""
EXACT: Final = "## Kept Exactly"
EMPTY: Final = "it is empty"


class Contract(Value):
    """The facts that a Summary must hold, so that work can go on from it alone."""

    tokens_max: int
    request: str = ""
    """The user's last request, word for word; empty if the history keeps it beside the Summary."""
    todos: tuple[str, ...] = ()
    plan: str | None = None
    """The path of the plan file."""
    files: tuple[str, ...] = ()
    handles: frozenset[str] = frozenset()
    """The recall handles of the summarised history; a Summary may name no other."""

    @property
    def facts(self) -> tuple[str, ...]:
        """The texts that a Summary must contain."""
        return tuple(one for one in (self.request, *self.todos, self.plan or "", *self.files) if one)


def target(room: int | None, head: int) -> int:
    """The tokens that a Summary may have: at most as many as the ``head`` it replaces, but at least TARGET_MIN."""
    share = min(TARGET_MAX, room // TARGET_SHARE) if room is not None else TARGET_MAX
    return max(TARGET_MIN, min(share, head))


def verbatim(texts: Sequence[str], previous: str | None) -> str:
    """The Summary of a very short history: the history itself, as text."""
    return "\n\n".join(one for one in (previous, *texts) if one)


def contract(
    head: Sequence[HistoryItem],
    kept: Sequence[HistoryItem],
    todos: Sequence[Todo],
    tokens_max: int,
    previous: str | None = None,
) -> Contract:
    """The contract for a Summary of ``head``. Requests in ``kept``, which stays beside the Summary, are not in it."""
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
    """The violations of the contract by a Summary."""
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
    """A Summary that fulfils its contract: facts added, unknown handles removed, a text that is too long cut."""
    known = _known_handles(summary.strip(), terms)
    missing = [fact for fact in terms.facts if fact not in known]
    added = "\n".join(["", "", EXACT, *(f"- {fact}" for fact in missing)]) if missing else ""
    room = terms.tokens_max * CHARS_PER_TOKEN - len(added)
    if len(known) > room:
        # Facts may be in the text that is cut, so all of them are added.
        added = "\n".join(["", "", EXACT, *(f"- {fact}" for fact in terms.facts)]) if terms.facts else ""
        known = _known_handles(cut(known, terms.tokens_max * CHARS_PER_TOKEN - len(added)), terms)
    return f"{known}{added}"


def unusable(failure: Failure | None, text: str, *, is_call: bool) -> str | None:
    """Why an answer cannot be used as a Summary; None if it can."""
    if failure is not None:
        return words_of(failure)
    if text.strip():
        return None
    return "the summariser called tools instead of answering" if is_call else "the summariser said nothing"


def folded(said: str, previous: str | None, piece: str, terms: Contract) -> str:
    """The Summary after one more piece of a long history: the answer ``said``, or previous and piece, cut."""
    if said.strip() and estimate(said) <= terms.tokens_max:
        return said.strip()
    return cut("\n\n".join(one for one in (previous, piece) if one), terms.tokens_max * CHARS_PER_TOKEN)


def final_text(
    said: str | None, terms: Contract, head: Sequence[HistoryItem], previous: str | None, plain: str, *, tokens_max: int
) -> str:
    """The text of a Summary: the completed answer ``said``, or a digest if it is None.

    The ``plain`` history replaces it if it is shorter and the Summary has more than ``tokens_max``.
    """
    if said is None:
        found = digest(terms, previous, head)
    else:
        found = said.strip() if not breaches(said.strip(), terms) else completed(said, terms)
    return found if estimate(found) <= tokens_max else min(found, completed(plain, terms), key=len)


def digest(terms: Contract, previous: str | None, head: Sequence[HistoryItem]) -> str:
    """A Summary made without a model: the facts of the contract, then excerpts of the history that fit."""
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
    """A message as text for the summariser: texts with their role, calls with input, results cut."""
    return "\n".join(_lines(entry))


def chunks(texts: Sequence[str], chars_max: int) -> list[str]:
    """Texts joined into pieces of at most ``chars_max``; a longer text is cut."""
    found: list[str] = []
    for text in texts:
        one = cut(text, chars_max)
        if one and found and len(found[-1]) + len(one) + 2 <= chars_max:
            found[-1] = f"{found[-1]}\n\n{one}"
        elif one:
            found.append(one)
    return found


def question(conversation: str, previous: str | None, terms: Contract | None, context: Sequence[str] = ()) -> str:
    """The prompt for the summariser, without its instructions. ``context`` comes from hooks."""
    blocks = [f"<prior-summary>\n{previous}\n</prior-summary>"] if previous else []
    blocks.append(f"<conversation>\n{conversation}\n</conversation>")
    blocks.extend(context)
    if terms is not None:
        blocks.append(_demands(terms))
    return "\n\n".join(blocks)


def _known_handles(text: str, terms: Contract) -> str:
    """A text without unknown handles. The remainder of a word that was cut may look like a handle."""
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
    """The handles of texts that the summariser sees cut, and those that texts mention."""
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
    return "\n\n".join(_own_words(entry))


def _own_words(entry: HistoryItem) -> list[str]:
    """The texts that the user wrote in a message."""
    said = [part for part in entry.parts if isinstance(part, TextPart) and not part.synthetic and not part.ignored]
    return [part.text for part in said if part.text.strip()]


def _fitting_request(head: Sequence[HistoryItem], tokens_max: int) -> str:
    """The last request word for word; its handle if it takes more than a quarter of the Summary."""
    users = [entry for entry in head if isinstance(entry.message, UserMessage) and _asked(entry)]
    if not users:
        return ""
    asked = _asked(users[-1])
    if estimate(asked) <= tokens_max // 4:
        return asked
    return handle(max(_own_words(users[-1]), key=len))


def _files_touched(head: Sequence[HistoryItem]) -> list[str]:
    """The changed files, in the order of their last change."""
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
    """The newest texts that fit into ``tokens_max``."""
    kept: list[str] = []
    left = tokens_max * CHARS_PER_TOKEN
    for one in reversed(words):
        left -= len(one) + FRAME_CHARS
        if left < 0:
            break
        kept.append(one)
    return tuple(reversed(kept))


def cut(text: str, chars_max: int) -> str:
    """The beginning and the end of a text, within ``chars_max``."""
    if len(text) <= chars_max:
        return text
    mark = " [...] "
    half = max(0, chars_max - len(mark)) // 2
    return f"{text[:half]}{mark}{text[len(text) - half :]}" if half else ""
