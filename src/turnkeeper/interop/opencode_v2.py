"""Convert opencode's second-generation messages to the format of the first, which the model has.

Messages keep their ids. Fields that the first generation does not have are kept under ``v2``, and so in ``$extra``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from turnkeeper.interop import shapes
from turnkeeper.interop.fields import objects, rest
from turnkeeper.interop.raw import RawMessage, RawObject, derived_id
from turnkeeper.model.value import Json, encode

UPDATE_KEY = "opencode"
"""The key of the Context Component that gets the text of a second-generation system message."""


@dataclass
class Translation:
    """Translates the messages of a session in order, with the agent, model and prompt of earlier messages."""

    directory: str
    worktree: str
    agent: str = "build"
    model: RawObject = field(default_factory=dict)
    prompt: str = ""

    def of(self, row: RawObject) -> Iterator[RawMessage]:
        """The messages of a row; none for an unknown type."""
        match row.get("type"):
            case "user":
                yield self._user(row, [_text(row), *_mentions(row)])
            case "synthetic":
                yield self._user(row, [{**_text(row), "synthetic": True}])
            case "system":
                yield _system(row, [{"key": UPDATE_KEY, "text": row.get("text", "")}])
            case "agent-switched":
                self.agent = row.get("agent", self.agent)
                yield _system(row, [])
            case "model-switched":
                self.model = shapes.as_object(row.get("model")) or self.model
                yield _system(row, [])
            case "shell":
                yield self._shell(row)
            case "compaction":
                yield from self._compaction(row)
            case "assistant":
                yield self._assistant(row)

    def _user(self, row: RawObject, parts: list[RawObject]) -> RawMessage:
        self.prompt = row["id"]
        info = {**_head(row, "user", "text", "files", "agents"), "agent": self.agent}
        if self.model:
            info["model"] = self._choice()
        return _message(info, parts)

    def _assistant(self, row: RawObject) -> RawMessage:
        self.agent = row.get("agent", self.agent)
        self.model = shapes.as_object(row.get("model")) or self.model
        mapped = ("agent", "model", "content", "finish", "cost", "tokens", "error")
        info = {**_head(row, "assistant", *mapped), **self._turn()}
        info.update({key: row[key] for key in ("finish", "cost", "tokens") if key in row})
        if isinstance(row.get("error"), dict):
            info["error"] = {"name": "UnknownError", "data": {"message": str(row["error"].get("message", ""))}}
            info["v2"]["error"] = row["error"]
        snapshot = shapes.as_object(row.get("snapshot"))
        parts = [_kept({"type": "step-start"}, snapshot=snapshot.get("start"))]
        parts += [_content(item, row) for item in objects(row.get("content"))]
        if "finish" in row or "tokens" in row:
            usage = {"reason": row.get("finish", "unknown"), "cost": row.get("cost", 0), "tokens": row.get("tokens")}
            parts.append(_kept({"type": "step-finish", **usage}, snapshot=snapshot.get("end")))
        if isinstance(snapshot.get("files"), list) and snapshot["files"]:
            files = [f"{self.worktree.rstrip('/')}/{file}" for file in snapshot["files"]]
            parts.append({"type": "patch", "hash": snapshot.get("start", ""), "files": files})
        return _message(info, parts)

    def _shell(self, row: RawObject) -> RawMessage:
        time = shapes.as_object(row.get("time"))
        state: RawObject = {"status": "running", "input": {"command": row.get("command", "")}}
        state["time"] = {"start": time.get("created", 0)}
        if "completed" in time:
            output = row.get("output", "")
            state |= {"status": "completed", "output": output, "title": "", "metadata": {"output": output}}
            state["time"] = {**state["time"], "end": time["completed"]}
        elif "output" in row:
            state["metadata"] = {"output": row["output"]}
        part = {"type": "tool", "tool": "bash", "callID": row.get("callID", ""), "state": state}
        return _message({**_head(row, "assistant", "callID", "command", "output"), **self._turn()}, [part])

    def _compaction(self, row: RawObject) -> Iterator[RawMessage]:
        asked = _head(row, "user", "reason", "summary", "recent")
        yield _message(
            {**asked, "agent": "compaction", **({"model": self._choice()} if self.model else {})},
            [{"type": "compaction", "auto": row.get("reason") == "auto"}],
        )
        created = shapes.created(row)
        name = derived_id("msg", created, 0, row["id"], "summary")
        self.prompt = row["id"]
        info = {"id": name, "role": "assistant", **self._turn(), "agent": "compaction", "mode": "compaction"}
        info |= {"summary": True, "finish": "stop", "time": {"created": created, "completed": created}}
        parts: list[RawObject] = [{"type": "text", "text": row.get("summary", "")}]
        if row.get("recent"):
            # The text that was kept from before the summary.
            parts.append({"type": "text", "text": row["recent"], "synthetic": True})
        yield _message(info, parts)

    def _turn(self) -> RawObject:
        path = {"cwd": self.directory, "root": self.worktree}
        info = {"parentID": self.prompt, "agent": self.agent, "mode": self.agent, "path": path}
        if self.model:
            info |= _kept(
                {"modelID": self.model.get("id"), "providerID": self.model.get("providerID")},
                variant=self.model.get("variant"),
            )
        return info

    def _choice(self) -> RawObject:
        model = {"providerID": self.model.get("providerID"), "modelID": self.model.get("id")}
        return _kept(model, variant=self.model.get("variant"))


def _head(row: RawObject, role: str, *mapped: str) -> RawObject:
    """The fields of every message, and under ``v2`` the fields that the caller does not map."""
    v2 = rest(row, "id", "sessionID", "time", *mapped)
    return {"id": row["id"], "role": role, "time": shapes.as_object(row.get("time")), "v2": v2}


def _message(info: RawObject, parts: list[RawObject]) -> RawMessage:
    """The message, with derived ids for its parts."""
    ms = shapes.created(info)
    named: list[Json] = [
        {**part, "id": derived_id("prt", ms, nth, info["id"], part["type"])} for nth, part in enumerate(parts)
    ]
    # The totals of the session row do not include these messages.
    return RawMessage(info, named, is_counted=False)


def _system(row: RawObject, updates: list[RawObject]) -> RawMessage:
    return _message({**_head(row, "system", "text"), "updates": updates}, [])


def _text(row: RawObject) -> RawObject:
    return {"type": "text", "text": row.get("text", "")}


def _mentions(row: RawObject) -> Iterator[RawObject]:
    for file in objects(row.get("files")):
        part = {"type": "file", "mime": file.get("mime", ""), "url": file.get("uri", "")}
        part = _kept(part, filename=file.get("name"), description=file.get("description"))
        if isinstance(file.get("source"), dict):
            url = str(part["url"])
            path = unquote(urlsplit(url).path) if url.startswith("file:") else file.get("name", "")
            part["source"] = {"type": "file", "path": path, "text": _mention(file["source"])}
        yield part
    for agent in objects(row.get("agents")):
        source = _mention(agent["source"]) if isinstance(agent.get("source"), dict) else None
        yield _kept({"type": "agent", "name": agent.get("name", "")}, source=source)


def _mention(source: RawObject) -> RawObject:
    return {"value": source.get("text", ""), "start": source.get("start", 0), "end": source.get("end", 0)}


def _content(content: RawObject, row: RawObject) -> RawObject:
    match content.get("type"):
        case "text":
            return {"type": "text", "text": content.get("text", ""), "v2": rest(content, "type", "text")}
        case "reasoning":
            time = shapes.as_object(content.get("time"))
            start = time.get("created", shapes.as_object(row.get("time")).get("created", 0))
            end = time.get("completed") if time else shapes.as_object(row.get("time")).get("completed", start)
            part = {"type": "reasoning", "text": content.get("text", ""), "time": _kept({"start": start}, end=end)}
            v2 = rest(content, "type", "text", "providerMetadata", "time")
            return _kept({**part, "v2": v2}, metadata=content.get("providerMetadata"))
        case "tool":
            return _tool(content)
        case _:
            return {"type": "unknown", "v2": content}


def _tool(content: RawObject) -> RawObject:
    part = {"type": "tool", "tool": content.get("name", ""), "callID": content.get("id", "")}
    part = _kept(part, provider=content.get("provider"))
    part["state"] = _state(shapes.as_object(content.get("state")), shapes.as_object(content.get("time")))
    return {**part, "v2": rest(content, "type", "name", "id", "provider", "state")}


def _state(state: RawObject, time: RawObject) -> RawObject:
    """The state of a tool call. Keys that only the second generation has are kept."""
    start = time.get("ran", time.get("created", 0))
    over = _kept({"start": start, "end": time.get("completed", start)}, compacted=time.get("pruned"))
    match state.get("status"):
        case "pending":
            return {**state, "input": {}, "raw": state.get("input", "")}
        case "running":
            return {**state, "time": {"start": start}, "metadata": shapes.as_object(state.get("structured"))}
        case "completed":
            content = objects(state.get("content"))
            texts = [str(item.get("text", "")) for item in content if item.get("type") == "text"]
            if not content and state.get("structured"):
                texts = [encode(state["structured"]).decode()]  # opencode sends this to the model in that case.
            files = [
                _file(item) for item in [*content, *objects(state.get("attachments"))] if "uri" in item or "url" in item
            ]
            return _kept({**state, "output": "\n".join(texts), "time": over}, attachments=files or None)
        case "error":
            error = state.get("error")
            said = error if isinstance(error, str) else str(shapes.as_object(error).get("message", error))
            kept = {} if isinstance(error, str) else {"v2": {"error": error}}
            raw = {"input": {}, "raw": state["input"]} if isinstance(state.get("input"), str) else {}
            return {**state, **kept, **raw, "error": said, "time": over}
        case _:
            return state


def _file(item: RawObject) -> RawObject:
    url = item.get("url", item.get("uri", ""))
    return _kept({"type": "file", "mime": item.get("mime", ""), "url": url}, filename=item.get("name"))


def _kept(given: RawObject, **optional: Json) -> RawObject:
    return {**given, **{key: item for key, item in optional.items() if item is not None}}
