"""The message shapes of opencode before 0.6, brought to the shape that every later version reads. JSON in, JSON out."""

from collections.abc import Iterator

from turnkeeper.interop.raw import RawObject, derived_id
from turnkeeper.interop.shapes import as_object, created
from turnkeeper.model.value import Json


def upgraded(message: RawObject) -> tuple[RawObject, list[RawObject]]:
    """A message and the parts that stood inside it. Parts get ids that are the same at every import."""
    info = _described(message) if isinstance(message.get("metadata"), dict) else dict(message)
    parts = info.pop("parts", None)
    if info.get("role") == "assistant":
        info.setdefault("mode", "build")
    ms = created(info)
    found = [as_object(part) for part in parts] if isinstance(parts, list) else []
    return info, [_named(part, derived_id("prt", ms, nth, info["id"], "part")) for nth, part in enumerate(found)]


def _named(part: RawObject, name: str) -> RawObject:
    # In those days a tool part's own id was the id of the call.
    call = {"callID": part["id"]} if part.get("type") == "tool" and "id" in part else {}
    return {**call, **part, "id": name}


def _described(message: RawObject) -> RawObject:
    """The first shape: facts in ``metadata``, parts as the model library of the time had them."""
    metadata = as_object(message["metadata"])
    assistant = as_object(metadata.get("assistant"))
    mapped = ("metadata", "parts")
    info = {key: value for key, value in message.items() if key not in mapped}
    info["time"] = as_object(metadata.get("time"))
    info["sessionID"] = metadata.get("sessionID")
    if info.get("role") == "assistant":
        names = ("cost", "path", "summary", "tokens", "modelID", "providerID", "system")
        info |= {name: assistant[name] for name in names if name in assistant}
        if "error" in metadata:
            info["error"] = metadata["error"]
    rest = {key: value for key, value in metadata.items() if key not in ("assistant", "error", "sessionID", "time")}
    if rest.pop("tool", None) is not None or rest:
        info["v0"] = rest
    parts = message.get("parts")
    tools = as_object(metadata.get("tool"))
    info["parts"] = [one for part in parts for one in _part(as_object(part), tools)] if isinstance(parts, list) else []
    return info


def _part(part: RawObject, tools: RawObject) -> Iterator[RawObject]:
    match part.get("type"):
        case "tool-invocation":
            yield _call(as_object(part.get("toolInvocation")) or part, tools)
        case "file":
            named = {key: value for key, value in part.items() if key != "mediaType"}
            yield {**named, "mime": part.get("mediaType", part.get("mime", ""))}
        case "text" | "step-start":
            yield part
        case _:
            # opencode itself dropped reasoning and links to sources here; we keep them word for word.
            yield {**part, "type": f"v0-{part.get('type')}"}


def _call(call: RawObject, tools: RawObject) -> RawObject:
    name = call.get("toolCallId", "")
    facts = as_object(tools.get(str(name)))
    rest = {key: value for key, value in facts.items() if key not in ("title", "time")}
    given: Json = call.get("args") or {}
    state: RawObject = {"status": "pending"}
    time = as_object(facts.get("time"))
    if call.get("state") == "call":
        state = {"status": "running", "input": given, "time": {"start": time.get("start", 0)}}
    elif call.get("state") == "result":
        state = {"status": "completed", "input": given, "output": call.get("result", "")}
        state |= {"title": facts.get("title", ""), "metadata": rest, "time": {"start": 0, "end": 0, **time}}
    return {"type": "tool", "callID": name, "id": name, "tool": call.get("toolName", ""), "state": state}
