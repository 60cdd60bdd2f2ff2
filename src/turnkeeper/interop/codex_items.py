"""Response items of Codex as messages and parts.

Codex does not record where an answer of the model begins and ends. Items up to the next result or prompt are one turn.
"""

from typing import Final

from turnkeeper.interop import shapes
from turnkeeper.interop.draft import Draft
from turnkeeper.interop.fields import data_url, objects, rest, rest_as, word
from turnkeeper.interop.raw import RawMessage, RawObject, Unreadable, parse
from turnkeeper.model.value import Json, encode

HARNESS: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
)
"""How texts begin that Codex itself puts into prompts."""


class Items:
    """Adds items to a draft. ``key`` is the number of the line."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self.key = ""
        self.provider, self.model = "openai", ""
        self._turn: RawMessage | None = None

    def close(self) -> None:
        """The next item begins another turn."""
        self._turn = None

    def is_prompt(self, message: RawMessage) -> bool:
        """Whether a person said a message."""
        return message.info["role"] == "user" and any(
            isinstance(part, dict) and part.get("type") in ("text", "file") and not part.get("synthetic")
            for part in message.parts
        )

    def add(self, item: RawObject) -> bool:
        """Add an item; False if it is not understood."""
        kind = word(item.get("type"))
        match kind:
            case "message":
                return self._message(item)
            case "reasoning":
                self._reasoning(item)
            case "function_call":
                raw = item.get("arguments")
                self._call(item, _arguments(raw), raw if isinstance(raw, str) else None, "arguments")
            case "custom_tool_call":
                self._call(item, {"input": item.get("input")}, None, "input")
            case "local_shell_call":
                self._call({"name": "shell", **item}, shapes.as_object(item.get("action")), None, "action")
            case "web_search_call" | "image_generation_call":
                self._hosted(kind.removesuffix("_call"), item)
            case _ if kind.endswith("_call") and isinstance(item.get("call_id"), str):
                given = _arguments(item.get("arguments"))
                self._call({"name": kind.removesuffix("_call"), **item}, given, None, "arguments")
            case _ if kind.endswith("_output"):
                return self._output(item)
            case _:
                return False
        return True

    def say(self, kind: str, text: str) -> None:
        """Add a text that only an event has."""
        if kind == "user":
            self.close()
            self._draft.text(self._draft.user(self.key), self.key, text)
        elif kind == "reasoning":
            self._draft.reasoning(self._open(), self.key, text, {})
        else:
            self._draft.text(self._open(), self.key, text)

    def _open(self) -> RawMessage:
        if self._turn is None:
            self._turn = self._draft.turn(self.key, self.provider, self.model)
        return self._turn

    def _message(self, item: RawObject) -> bool:
        content = item.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
        if not blocks or (isinstance(content, list) and len(blocks) != len(content)):
            return False
        role = item.get("role")
        if role == "assistant":
            message = self._open()
        else:
            self.close()
            message = self._draft.user(self.key, rest(item, "type", "content", "timestamp"))
        for nth, block in enumerate(blocks):
            self._block(message, f"{self.key}/{nth}", block, role)
        return True

    def _block(self, message: RawMessage, key: str, block: RawObject, role: Json) -> None:
        text = block.get("text")
        image = block.get("image_url")
        more = rest_as("codex", block, "type", "text")
        if isinstance(text, str):
            harness = role not in ("user", "assistant") or (role == "user" and text.lstrip().startswith(HARNESS))
            marks = {"synthetic": True, "ignored": True} if harness else {}
            self._draft.text(message, key, text, {**marks, **more})
        elif isinstance(image, str):
            self._draft.part(message, key, {**_image(image), "codex": rest(block, "type", "image_url")})
        else:
            self._draft.part(message, key, {"type": "codex-block", "block": block})

    def _reasoning(self, item: RawObject) -> None:
        sealed = rest(item, "type", "summary", "content", "timestamp")
        self._draft.reasoning(self._open(), self.key, "\n\n".join(texts_of(item)), sealed)

    def _call(self, item: RawObject, given: Json, raw: str | None, *mapped: str) -> None:
        own = rest_as("codex", item, "type", "name", "call_id", "timestamp", *mapped)
        call_id = item.get("call_id", item.get("id"))
        self._draft.call(self._open(), call_id, item.get("name"), given, own, raw=raw or "")

    def _hosted(self, tool: str, item: RawObject) -> None:
        """A call that the provider ran itself. Its result is not recorded, but for an image."""
        name = f"{word(item.get('id')) or tool}-{self.key}"
        given = item.get("action", item.get("revised_prompt"))
        own = rest(item, "type", "action", "result", "timestamp")
        self._draft.call(self._open(), name, tool, given, {"codex": own, "provider": {"executed": True}})
        image = item.get("result")
        files = [data_url("image/png", image)] if isinstance(image, str) and image else []
        status = word(item.get("status")) or "completed"
        self._draft.settle(name, status, files, {}, is_error=status == "failed")

    def _output(self, item: RawObject) -> bool:
        output, is_error, metadata = item.get("output"), False, {}
        if isinstance(output, dict):  # An older layout: {"content", "success"}.
            is_error, metadata = output.get("success") is False, rest(output, "content")
            output = output.get("content")
        if output is None:
            output = item.get("tools")
        files: list[RawObject] = []
        if isinstance(output, list):
            files = [_image(one["image_url"]) for one in objects(output) if isinstance(one.get("image_url"), str)]
            output = "\n".join(_text(one) for one in output if "image_url" not in shapes.as_object(one))
        text, more = _unwrapped(output if isinstance(output, str) else encode(output).decode())
        self.close()
        own = rest_as("codex", item, "type", "call_id", "output", "tools", "timestamp")
        kept = {**metadata, **more, **own}
        return self._draft.settle(item.get("call_id"), text, files, kept, is_error=is_error)


def texts_of(item: RawObject) -> list[str]:
    """The texts of a message or of reasoning."""
    found: list[str] = []
    for field in ("summary", "content"):
        value = item.get(field)
        if isinstance(value, str):
            found.append(value)
        found += [block["text"] for block in objects(value) if isinstance(block.get("text"), str)]
    return found


def _arguments(raw: Json) -> Json:
    """The arguments of a call, which are JSON in a text."""
    if not isinstance(raw, str):
        return raw
    try:
        found = parse(raw)
    except Unreadable:
        return {"arguments": raw}
    return found if isinstance(found, dict) else {"arguments": raw}


def _unwrapped(text: str) -> tuple[str, RawObject]:
    """The output of a command that is JSON with its exit code, and the rest of that JSON."""
    if text.startswith('{"output"'):
        try:
            found = shapes.as_object(parse(text))
        except Unreadable:
            return text, {}
        if isinstance(found.get("output"), str):
            return found["output"], rest(found, "output")
    return text, {}


def _image(url: str) -> RawObject:
    mime = url[len("data:") :].partition(";")[0] if url.startswith("data:") else "image/png"
    return {"type": "file", "mime": mime or "image/png", "url": url}


def _text(block: Json) -> str:
    text = shapes.as_object(block).get("text", block)
    return text if isinstance(text, str) else encode(text).decode()
