"""Draft: a session of another program while it is made from the lines of a file.

The result is a RawSession in opencode's format. Ids depend only on the program's own ids, so every import derives the
same ones. Fields that the format has no place for are kept under the name of the program, and so in ``$extra``.
"""

from itertools import count
from typing import Final

from turnkeeper.core.limits import BRANCH_MESSAGES_MAX, TITLE_CHARS_MAX
from turnkeeper.core.titles import default_title
from turnkeeper.interop import imported, shapes
from turnkeeper.interop.draft_history import answer_prompts, copied, cost_of, tokens_of
from turnkeeper.interop.fields import first_prompt, milliseconds, usage
from turnkeeper.interop.raw import RawMessage, RawObject, RawSession, derived_id, derived_session_id
from turnkeeper.interop.report import Finding
from turnkeeper.model.session import Origin
from turnkeeper.model.value import Json

NO_RESULT: Final = "[The history of {} has no result of this call]"


class Draft:
    """The messages of one session in order. ``key`` is the id of the session in its program."""

    def __init__(self, program: str, key: str, *, name: str | None = None) -> None:
        self.program, self.key = program, key
        self.id = name or derived_session_id(program, key)
        self.messages: list[RawMessage] = []
        self.directory = self.title = self.parent = ""
        self.facts: RawObject = {}
        """Further facts about the session, such as its git branch."""
        self.origin: Origin | None = None
        self.skipped: list[Finding] = []
        self.branches: list[list[RawMessage]] = []
        """Histories that the program took back, each from its first message to its last."""
        self._calls: dict[str, RawObject] = {}
        self._early: list[tuple[str, RawObject]] = []
        self._part_ids: dict[int, set[str]] = {}
        self._message_ids: set[str] = set()
        self.ms = 0
        """The time of the newest line that has one."""

    def at(self, time: Json) -> int:
        """The time of a line in milliseconds; that of the line before if it has none."""
        self.ms = milliseconds(time, self.ms)
        return self.ms

    def user(self, key: str, rest: RawObject | None = None) -> RawMessage:
        """Begin a prompt. ``rest`` are fields of the source that have no place here."""
        return self._message("user", key, rest)

    def turn(self, key: str, provider: str, model: Json, rest: RawObject | None = None) -> RawMessage:
        """Begin a turn."""
        message = self._message("assistant", key, rest)
        message.info["time"]["completed"] = self.ms
        message.info |= {"finish": "stop", "tokens": usage()}
        message.info |= {"providerID": provider, "modelID": model if isinstance(model, str) and model else "unknown"}
        return message

    def summary(
        self, key: str, text: str, provider: str, model: Json, rest: RawObject, *, is_auto: bool = False
    ) -> RawMessage:
        """A compaction: the prompt that asks for it, and the turn with the Summary."""
        asked = self.user(key, rest)
        asked.info["agent"] = "compaction"
        self.part(asked, "compaction", {"type": "compaction", "auto": is_auto})
        made = self.turn(f"{key}/summary", provider, model)
        made.info |= {"summary": True, "agent": "compaction", "mode": "compaction"}
        self.part(made, "text", {"type": "text", "text": text})
        return asked

    def part(self, message: RawMessage, key: str, body: RawObject) -> RawObject:
        """Add a part to a message. ``key`` identifies it within the message."""
        if message.info["role"] == "assistant":
            message.info["time"]["completed"] = max(message.info["time"]["completed"], self.ms)
        return self._add(message, key, body)

    def _add(self, message: RawMessage, key: str, body: RawObject) -> RawObject:
        known = self._part_ids.setdefault(id(message), set())
        part = {**body, "id": _free_id(known, "prt", shapes.created(message.info), message.info["id"], key)}
        message.parts.append(part)
        return part

    def text(self, message: RawMessage, key: str, text: str, marks: RawObject | None = None) -> None:
        """Add a text. ``marks`` are further fields of the part."""
        self.part(message, key, {"type": "text", "text": text, **(marks or {})})

    def reasoning(self, message: RawMessage, key: str, text: str, sealed: RawObject) -> None:
        """Add reasoning. ``sealed`` is kept and not sent: only the account that got it may send it back."""
        span = {"start": self.ms, "end": self.ms}
        metadata = {"metadata": {self.program: sealed}} if sealed else {}
        self.part(message, key, {"type": "reasoning", "text": text, "time": span, **metadata})

    def keep(self, key: str, line: Json) -> None:
        """Keep a line unchanged, with the newest message."""
        body = {"type": f"{self.program}-line", "line": line}
        if self.messages:
            self._add(self.messages[-1], f"line {key}", body)
        else:
            self._early.append((f"line {key}", body))

    def inherit(self, other: "Draft") -> None:
        """Keep what another draft has kept, which has no message."""
        for key, body in other._early:
            self.keep(key, body["line"])

    def call(
        self,
        message: RawMessage,
        call_id: Json,
        tool: Json,
        given: Json,
        marks: RawObject | None = None,
        *,
        raw: str = "",
    ) -> None:
        """Add a tool call, which waits for its result. ``marks`` are further fields of the part."""
        name = call_id if isinstance(call_id, str) and call_id else f"call-{len(self._calls)}"
        arguments = given if isinstance(given, dict) else {} if given is None else {"input": given}
        state = {"status": "pending", "input": arguments, "raw": raw}
        body: RawObject = {
            "type": "tool",
            "callID": name,
            "tool": tool if isinstance(tool, str) and tool else "unknown",
        }
        body |= {"state": state, "started": self.ms}
        self._calls[name] = self.part(message, f"call {name}", {**(marks or {}), **body})
        message.info["finish"] = "tool-calls"

    def settle(
        self,
        call_id: Json,
        output: str,
        files: list[RawObject],
        metadata: RawObject,
        *,
        is_error: bool = False,
        full: str | None = None,
    ) -> bool:
        """Give a call its result; False if there is no such call without one. ``full`` is the whole output."""
        part = self._calls.get(call_id) if isinstance(call_id, str) else None
        if part is None or part["state"]["status"] != "pending":
            return False
        kept = {key: value for key, value in metadata.items() if value is not None}
        span = {"start": part["started"], "end": max(self.ms, part["started"])}
        state = {"input": part["state"]["input"], "raw": part["state"]["raw"] or None, "time": span}
        if is_error:
            more = {"files": files} if files else {}
            part["state"] = {**state, "status": "error", "error": output, "metadata": {**kept, **more}}
            return True
        state |= {"status": "completed", "output": output, "title": "", "metadata": kept}
        if files:
            state["attachments"] = files
        if full:
            state["full"] = full
        part["state"] = state
        return True

    def rewind(self, index: int) -> None:
        """Take back the messages from an index on. They become a branch."""
        if index < len(self.messages):
            self.branches.append(list(self.messages))
            del self.messages[index:]

    def sessions(self, place: str) -> list[RawSession]:
        """The branches and the session; none if it has no message."""
        self.branches = [branch for branch in self.branches if branch]
        if not self.messages and not self.branches:
            return []
        if not self.messages:  # Everything was taken back.
            self.messages = self.branches.pop()
        for key, body in self._early:
            self._add(self.messages[-1], key, body)
        self._settle_lost()
        for history in (*self.branches, self.messages):
            answer_prompts(history)
        own = self._session(self.id, self.messages, place)
        kept = {message.info["id"] for message in self.messages}
        own.gone = frozenset(one.info["id"] for branch in self.branches for one in branch) - kept
        own.origin, own.skipped = self.origin, self.skipped
        found, copies = [], 0
        seen = set(kept)
        for branch in self.branches:
            tail = [one for one in branch if one.info["id"] not in seen]
            seen |= {one.info["id"] for one in tail}
            if not tail:
                continue
            new = {one.info["id"] for one in tail}
            head = [one for one in branch if one.info["id"] not in new]
            copies += len(head)
            if copies > BRANCH_MESSAGES_MAX:
                reason = (
                    f"a branch of it begins with {tail[0].info['id']}, without what came before: there are too many"
                )
                own.skipped.append(Finding(reason=reason, place=place, session_id=self.id))
                head = []
            found.append(self._branch(head, tail, place))
        return [*found, own]

    def _message(self, role: str, key: str, rest: RawObject | None) -> RawMessage:
        name = _free_id(self._message_ids, "msg", self.ms, self.id, key)
        info: RawObject = {"id": name, "role": role, "time": {"created": self.ms}}
        kept = {field: value for field, value in (rest or {}).items() if value is not None}
        info[self.program] = {**kept, "source": key}
        message = RawMessage(info, [])
        self.messages.append(message)
        early, self._early = self._early, []
        for part_key, body in early:
            self._add(message, part_key, body)
        return message

    def _settle_lost(self) -> None:
        """Close the calls without a result. Those of the last message may still get one."""
        last = {id(message) for history in (self.messages, *self.branches) for message in history[-1:]}
        for history in (self.messages, *self.branches):
            for message in history:
                for part in message.parts:
                    if isinstance(part, dict) and part.get("type") == "tool":
                        start = part.pop("started", None)
                        if part["state"]["status"] == "pending" and id(message) not in last:
                            lost = {"status": "error", "error": NO_RESULT.format(self.program)}
                            time = {"start": start, "end": start}
                            given = {"input": part["state"]["input"], "metadata": {"interrupted": True}}
                            part["state"] = {**lost, **given, "time": time}

    def _session(self, name: str, messages: list[RawMessage], place: str) -> RawSession:
        times = [shapes.created(one.info) for one in messages]
        title = " ".join(self.title.split()) or first_prompt(messages)
        title = title[:TITLE_CHARS_MAX] or default_title(times[0], child=bool(self.parent))
        facts = {"program": self.program, "session": self.key, "title": title, **self.facts}
        info: RawObject = {"id": name, "title": title, "directory": self.directory, "metadata": {imported.KEY: facts}}
        info["time"] = {"created": times[0], "updated": max(times)}
        turns = [one.info for one in messages if one.info["role"] == "assistant" and not one.info.get("summary")]
        if turns:
            info["model"] = {"id": turns[-1]["modelID"], "providerID": turns[-1]["providerID"]}
        if self.parent:
            info["parentID"] = self.parent
        return RawSession(info, messages, place=place, follows=True)

    def _branch(self, head: list[RawMessage], tail: list[RawMessage], place: str) -> RawSession:
        first = tail[0].info["id"]
        name = derived_session_id(self.id, first)
        names = {
            one.info["id"]: derived_id("msg", shapes.created(one.info), 0, name, one.info["id"])
            for one in (*head, *tail)
        }
        copies = [copied(one, names, is_counted=False) for one in head]
        copies += [copied(one, names, is_counted=True) for one in tail]
        made = self._session(name, copies, place)
        made.info["title"] = f"{made.info['title']} (branch)"
        made.info["metadata"][imported.KEY] |= {"title": made.info["title"], "branch": first}
        made.info |= {"cost": sum(cost_of(one) for one in tail), "tokens": tokens_of(tail)}
        made.info.pop("parentID", None)
        made.origin = Origin(session_id=self.id)
        return made


def _free_id(taken: set[str], prefix: str, ms: int, *of: str) -> str:
    """The first derived id that is not taken, which it is from now on."""
    name = next(name for nth in count() if (name := derived_id(prefix, ms, nth, *of)) not in taken)
    taken.add(name)
    return name
