"""Parses plain requests into tool calls for the offline model, by regular expressions.

list the files · read X · write X: text · replace A with B in X · run `command` · search for Y · plan a, b and c
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from turnkeeper.model.value import Json, Value

EXAMPLES: Final = (
    "list the files",
    "read README.md",
    "write notes.txt: hello",
    "replace hello with goodbye in notes.txt",
    "run `git status`",
    "search for open( in src",
    "plan the release, the announcement and the party",
)

SENTENCE_CHARS_MAX: Final = 2_000
"""Longer sentences are matched only against the first rule, because the others may backtrack too long."""


class Task(Value):
    """One tool call: the tool, and its arguments by their usual names."""

    tool: str
    arguments: Mapping[str, Json]
    saying: str
    """The text that announces the task, as ``Reading `a.py` ``."""
    is_asked: bool = True
    """Whether the user asked for the task. A task that only another tool needs is not reported."""


Step = tuple[Task, ...]
"""Independent tasks, whose calls are made in one turn."""


class Understanding(Value):
    """A parsed request: the steps in order, and the sentences that match no rule."""

    steps: tuple[Step, ...]
    missed: tuple[str, ...]


def understood(text: str) -> Understanding:
    """Parse a request. Sentences count as missed only if another sentence matches a rule."""
    steps: list[Step] = []
    missed: list[str] = []
    for sentence in _sentences(text):
        step = _step(sentence)
        if step:
            if unread := _unread(step, steps):
                steps.append(unread)
            steps.append(step)
        else:
            missed.append(sentence.restored(sentence.text))
    return Understanding(steps=tuple(steps), missed=tuple(missed if steps else ()))


def _unread(step: Step, before: list[Step]) -> Step:
    """Tasks that read the files of a step's edits, unless an earlier step uses them: a tool edits only known files."""
    known = {task.arguments.get("filePath") for one in before for task in one}
    paths = [task.arguments["filePath"] for task in step if task.tool == "edit"]
    return tuple(
        Task(tool="read", arguments={"filePath": path}, saying=f"Reading `{path}`", is_asked=False)
        for path in paths
        if path not in known
    )


def _step(sentence: "_Sentence") -> Step:
    rules = _RULES if len(sentence.text) <= SENTENCE_CHARS_MAX else _RULES[:1]
    for pattern, reading in rules:
        if found := pattern.fullmatch(sentence.text):
            words = {name: sentence.restored(value or "") for name, value in found.groupdict().items()}
            if step := reading(words):
                return step
    return ()


class _Sentence:
    """A sentence in which a placeholder character replaces each quoted passage, so that no rule matches inside."""

    def __init__(self, text: str, quoted: list[str]) -> None:
        self.text = text
        self._quoted = quoted

    def restored(self, text: str) -> str:
        """The text with its quoted passages; a text that is one quotation loses its quotation marks."""
        bare = _bare(self._quoted[ord(text) - _MARK]) if len(text) == 1 and ord(text) >= _MARK else text
        return _MARKS.sub(lambda mark: self._quoted[ord(mark[0]) - _MARK], bare)


_MARK: Final = 0x100000  # A private use plane of Unicode, which requests do not contain.
_MARKS: Final = re.compile(f"[{chr(_MARK)}-\U0010ffff]")
_QUOTED: Final = re.compile(r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|“[^”]*”", re.DOTALL)
_VERB: Final = r"(?:list|show|read|open|cat|write|create|replace|change|run|execute|search|grep|find|look|plan|make)\b"
_THEN: Final = re.compile(rf"(?:\s*[,;.]\s*|\s+)(?:and\s+)?(?:then|after that|next),?\s+(?={_VERB})", re.IGNORECASE)
_BETWEEN: Final = re.compile(
    rf"{_THEN.pattern}"
    rf"|\s*[,;]\s*(?:and\s+)?(?={_VERB})"
    rf"|\s+and\s+(?={_VERB})"
    rf"|(?:\s*\.)?\s*\n+\s*(?:[-*]\s+|\d+[.)]\s+)?(?={_VERB})"
    rf"|\.\s+(?:now\s+|then\s+|finally,?\s+)?(?={_VERB})",
    re.IGNORECASE,
)

_ITEM: Final = re.compile(rf"\s*\n\s*(?:[-*]|\d+[.)])\s+(?={_VERB})", re.IGNORECASE)
_PLANS: Final = re.compile(r"\s*(?:please\s+)?(?:make\s+a\s+)?plan\b", re.IGNORECASE)
_WRITES: Final = re.compile(
    r"(?:\A\s*|\bthen\s+|\band\s+|[.,;]\s+|\n\s*)(?P<item>(?:[-*]|\d+[.)])\s+)?(?:please\s+)?"
    r"(?P<write>write\s+(?:the\s+)?(?:file\s+)?[^\s:]+\s*:)",
    re.IGNORECASE,
)


def _sentences(text: str) -> list[_Sentence]:
    quoted: list[str] = []

    def mark(passage: re.Match[str]) -> str:
        quoted.append(passage[0])
        return chr(_MARK + len(quoted) - 1)

    plain = _QUOTED.sub(mark, _MARKS.sub("\ufffd", text))
    pieces = (re.sub(r"^(?:[-*]|\d+[.)])\s+", "", piece.strip()) for piece in _pieces(plain))
    polite = r"^(?:please|now|first|then|can you|could you|would you|i want you to)[,\s]+"
    return [_Sentence(re.sub(polite, "", piece, flags=re.IGNORECASE), quoted) for piece in pieces if piece]


def _pieces(plain: str) -> list[str]:
    """The text split where a new request begins; a file's content and a plan are split at fewer places."""
    if _PLANS.match(plain):
        return _THEN.split(plain)
    if not (found := _WRITES.search(plain)):
        return _BETWEEN.split(plain)
    before, content = plain[: found.start("write")], plain[found.start("write") :]
    several = "\n" in content.strip()
    rest = _ITEM.split(content) if found["item"] else [content] if several else _THEN.split(content)
    return [*_BETWEEN.split(re.sub(r"[,;]?\s*(?:and\s+)?(?:then\s+)?\Z", "", before)), *rest]


def _bare(passage: str) -> str:
    if passage.startswith("```"):
        body = passage[3:-3]
        first, line, rest = body.partition("\n")
        # A fence may name a language on its first line.
        return rest if line and re.fullmatch(r"\w*", first.strip()) else body
    return passage[1:-1]


# --- The rules: first match wins ---------------------------------------------------------------------------------


def _list(words: Mapping[str, str]) -> Step:
    folder = words["folder"].strip().rstrip("/")
    where = {"path": folder} if folder and folder not in (".", "here", "this project") else {}
    return (Task(tool="glob", arguments={"pattern": "**/*", **where}, saying="Listing the files"),)


def _read(words: Mapping[str, str]) -> Step:
    listed = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", words["files"].strip().rstrip("?.!"))
    names = [_path(name) for name in listed if name]
    if not all(_is_path(name) for name in names):
        return ()
    return tuple(Task(tool="read", arguments={"filePath": name}, saying=f"Reading `{name}`") for name in names)


def _write(words: Mapping[str, str]) -> Step:
    path, content = _path(words["path"].strip()), words["content"]
    if not path or " " in path:
        return ()
    content = content if content.endswith("\n") or not content else f"{content}\n"
    return (Task(tool="write", arguments={"filePath": path, "content": content}, saying=f"Writing `{path}`"),)


def _replace(words: Mapping[str, str]) -> Step:
    path, everywhere = _path(words["path"].strip().rstrip(".!")), bool(words["every"])
    arguments: dict[str, Json] = {"filePath": path, "oldString": words["old"], "newString": words["new"]}
    if everywhere:
        arguments["replaceAll"] = True
    return (Task(tool="edit", arguments=arguments, saying=f"Editing `{path}`"),)


def _run(words: Mapping[str, str]) -> Step:
    command = words["command"].strip()
    return (Task(tool="bash", arguments={"command": command, "description": "Run it"}, saying=f"Running `{command}`"),)


def _search(words: Mapping[str, str]) -> Step:
    wanted, folder = words["wanted"].strip().rstrip("?"), words["folder"].strip().rstrip("/?.")
    where = {"path": folder} if folder and folder not in ("the files", "the code", "this project", "here") else {}
    pattern = wanted[1:-1] if len(wanted) > 2 and wanted[0] == wanted[-1] == "/" else _literal(wanted)
    return (Task(tool="grep", arguments={"pattern": pattern, **where}, saying=f"Searching for `{wanted}`"),)


def _find(words: Mapping[str, str]) -> Step:
    pattern = words["pattern"].strip()
    return (Task(tool="glob", arguments={"pattern": pattern}, saying=f"Looking for files like `{pattern}`"),)


def _plan(words: Mapping[str, str]) -> Step:
    subject = words["subject"].strip().strip(".")
    items = [item.strip(" .") for item in re.split(r"\s*[,;\n]\s*(?:and\s+)?|\s+and\s+", subject) if item.strip(" .")]
    items = [re.sub(r"^(?:[-*]|\d+[.)])\s*", "", item) for item in items]
    if len(items) < 2:
        items = [f"Look at what there is for: {subject}", f"Do it: {subject}", "Check the result"]
    todos = [
        {
            "content": item,
            "status": "in_progress" if number == 0 else "pending",
            "priority": "medium",
            "id": str(number + 1),
        }
        for number, item in enumerate(items)
    ]
    return (Task(tool="todowrite", arguments={"todos": todos}, saying="Writing the plan down"),)


def _path(name: str) -> str:
    """The path of a file that may be mentioned after ``@``."""
    return name.removeprefix("@")


def _is_path(name: str) -> bool:
    return re.fullmatch(r"[\w.@~+-]*[./][\w./@~+-]*|[A-Z][A-Za-z]*file|LICENSE|[\w-]+\.\w+", name) is not None


def _literal(text: str) -> str:
    """A regular expression for the literal text."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)


def _rule(
    pattern: str, reading: Callable[[Mapping[str, str]], Step]
) -> tuple[re.Pattern[str], Callable[[Mapping[str, str]], Step]]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL), reading


_FILE: Final = r"(?:the\s+)?(?:file\s+|files\s+)?"
_RULES: Final = (
    # First, since it is the one rule that long sentences are held against.
    _rule(rf"write\s+{_FILE}(?P<path>[^\s:]+)\s*:\s?(?P<content>.*)", _write),
    _rule(
        r"(?:(?:list|show)(?:\s+me)?(?:\s+all)?(?:\s+(?:the|my|your))?\s+(?:files?|director(?:y|ies)|folders?)"
        r"|what\s+files\s+are\s+(?:there|here)|ls)(?:\s+(?:here|in\s+(?P<folder>\S+)))?[.?!]?",
        _list,
    ),
    _rule(rf"(?:write|put)\s+(?P<content>.+?)\s+(?:to|into|in)\s+{_FILE}(?P<path>\S+?)[.!]?", _write),
    _rule(
        rf"(?:create|write|make)\s+(?:a\s+)?(?:new\s+)?{_FILE}(?:(?:called|named)\s+)?(?P<path>\S+?)"
        r"\s+(?:with|containing|saying)(?:\s+the)?(?:\s+(?:content|text|words))?:?\s+(?P<content>.+)",
        _write,
    ),
    _rule(
        r"(?:replace|change)\s+(?P<every>all\s+|every\s+)?(?P<old>.+?)\s+(?:with|by|to)\s+(?P<new>.+?)"
        rf"\s+in\s+{_FILE}(?P<path>\S+)",
        _replace,
    ),
    _rule(r"(?:run|execute)\s+(?:the\s+)?(?:command\s+|shell\s+command\s+)?(?P<command>.+)", _run),
    _rule(
        r"(?:search|grep|look)\s+(?:for\s+)?(?P<wanted>.+?)"
        r"(?:\s+in\s+(?P<folder>the files|the code|this project|\S+))?",
        _search,
    ),
    _rule(r"find\s+(?:all\s+)?(?:the\s+)?(?:files\s+)?(?:named\s+|called\s+|like\s+)?(?P<pattern>\S*[*?]\S*)", _find),
    _rule(r"(?:find|where\s+is)\s+(?P<wanted>.+?)(?:\s+in\s+(?P<folder>\S+))?", _search),
    _rule(r"(?:make\s+a\s+)?plan(?:\s+for)?\s*:?\s+(?P<subject>.+)", _plan),
    _rule(rf"(?:read|open|cat|show)(?:\s+me)?\s+{_FILE}(?P<files>.+)", _read),
)
