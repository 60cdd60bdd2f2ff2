"""Records of Gemini CLI as messages: parts, thoughts and tool calls."""

from typing import Final

from turnkeeper.interop import shapes
from turnkeeper.interop.draft import Draft
from turnkeeper.interop.fields import count, data_url, rest, rest_as, usage, word
from turnkeeper.interop.raw import RawMessage, RawObject
from turnkeeper.model.value import Json, encode

PROVIDER: Final = "google"
_DONE: Final = ("success", "error", "cancelled")


class Record:
    """One record, which becomes a message of a draft or is kept."""

    def __init__(self, draft: Draft, body: RawObject) -> None:
        self._draft, self._body = draft, body

    def message(self) -> RawMessage | None:
        """The message of the record; None if it is kept as a foreign part."""
        draft, body = self._draft, self._body
        draft.at(body.get("timestamp"))
        if body["type"] == "user":
            message = draft.user(body["id"], rest(body, "id", "timestamp", "type", "content"))
        elif body["type"] == "gemini":
            mapped = ("id", "timestamp", "type", "content", "toolCalls", "thoughts", "tokens", "model")
            message = draft.turn(body["id"], PROVIDER, body.get("model"), rest(body, *mapped))
            message.info["tokens"] = _tokens(shapes.as_object(body.get("tokens")))
            self._thoughts(message)
        else:
            draft.keep(body["id"], body)
            return None
        for nth, part in enumerate(_parts(body.get("content"))):
            self._part(message, f"content {nth}", part)
        if body["type"] == "gemini":
            self._calls(message)
        return message

    def _thoughts(self, message: RawMessage) -> None:
        thoughts = self._body.get("thoughts")
        for nth, one in enumerate(thoughts if isinstance(thoughts, list) else () if thoughts is None else [thoughts]):
            thought = shapes.as_object(one)
            subject, description = thought.get("subject"), thought.get("description")
            if not isinstance(subject, str) and not isinstance(description, str):
                self._draft.part(message, f"thought {nth}", {"type": "gemini-thought", "thought": one})
                continue
            heading = f"**{subject}**" if isinstance(subject, str) and subject else ""
            text = "\n\n".join(one for one in (heading, word(description)) if one)
            self._draft.reasoning(message, f"thought {nth}", text, rest(thought, "subject", "description"))

    def _part(self, message: RawMessage, key: str, part: RawObject) -> None:
        draft = self._draft
        inline, file = shapes.as_object(part.get("inlineData")), shapes.as_object(part.get("fileData"))
        if isinstance(part.get("text"), str) and part.get("thought") is True:
            draft.reasoning(message, key, part["text"], rest(part, "text", "thought"))
        elif isinstance(part.get("text"), str):
            draft.text(message, key, part["text"], rest_as("gemini", part, "text"))
        elif isinstance(inline.get("data"), str):
            more = rest_as("gemini", part, "inlineData")
            draft.part(message, key, {**data_url(inline.get("mimeType"), inline["data"]), **more})
        elif isinstance(file.get("fileUri"), str):
            mime = word(file.get("mimeType")) or "application/octet-stream"
            draft.part(message, key, {"type": "file", "mime": mime, "url": file["fileUri"], "gemini": part})
        else:
            draft.part(message, key, {"type": "gemini-part", "part": part})

    def _calls(self, message: RawMessage) -> None:
        calls = self._body.get("toolCalls")
        for nth, one in enumerate(calls if isinstance(calls, list) else () if calls is None else [calls]):
            call = shapes.as_object(one)
            if not isinstance(call.get("name"), str):
                self._draft.part(message, f"call {nth}", {"type": "gemini-call", "call": one})
                continue
            self._draft.at(call.get("timestamp"))
            name = word(call.get("id")) or f"{self._body['id']}-{nth}"
            own = rest_as("gemini", call, "id", "name", "args", "result", "status", "timestamp")
            self._draft.call(message, name, call["name"], call.get("args"), own)
            if call.get("status") in _DONE or call.get("result") is not None:
                self._result(name, call)

    def _result(self, name: str, call: RawObject) -> None:
        texts: list[str] = []
        files: list[RawObject] = []
        for part in _parts(call.get("result")):
            inline = shapes.as_object(part.get("inlineData"))
            if isinstance(inline.get("data"), str):
                files.append(data_url(inline.get("mimeType"), inline["data"]))
            else:
                texts.append(_answer(part))
        output = "\n".join(texts) or word(call.get("resultDisplay"))
        is_error = call.get("status") in ("error", "cancelled")
        kept = {"status": call.get("status"), "result": call.get("result")}
        self._draft.settle(name, output, files, kept, is_error=is_error)


def _answer(part: RawObject) -> str:
    response = shapes.as_object(part.get("functionResponse")).get("response")
    fields = shapes.as_object(response)
    for found in (part.get("text"), fields.get("output"), fields.get("error"), response):
        if isinstance(found, str):
            return found
    return encode(response if response is not None else part).decode()


def _tokens(given: RawObject) -> RawObject:
    """The usage of a turn. ``input`` includes what was read from the cache."""
    cached = count(given.get("cached"))
    fresh = max(0, count(given.get("input")) - cached) + count(given.get("tool"))
    return usage(fresh, given.get("output"), given.get("thoughts"), cached)


def _parts(content: Json) -> list[RawObject]:
    """A text, a part, or a list of these, as parts."""
    listed = content if isinstance(content, list) else [] if content is None else [content]
    return [
        {"text": one} if isinstance(one, str) else one if isinstance(one, dict) else {"value": one} for one in listed
    ]
