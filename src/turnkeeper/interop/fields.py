"""Fields of other programs' histories as values of ours: times, counts of tokens, files, titles."""

from datetime import UTC, datetime

from turnkeeper.core.limits import IMPORTED_TITLE_CHARS
from turnkeeper.interop import shapes
from turnkeeper.interop.raw import RawMessage, RawObject
from turnkeeper.model.value import Json


def milliseconds(time: Json, default: int) -> int:
    """A time of a source in milliseconds since 1970."""
    if shapes.is_number(time):
        ms = int(time if time > 100_000_000_000 else time * 1000) if -1e15 < time < 1e15 else -1
        return ms if 0 <= ms <= shapes.TIME_MAX else default
    if not isinstance(time, str) or not time:
        return default
    try:
        read = datetime.fromisoformat(time)
        ms = int((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return default
    return ms if 0 <= ms <= shapes.TIME_MAX else default


def usage(input: Json = 0, output: Json = 0, reasoning: Json = 0, read: Json = 0, write: Json = 0) -> RawObject:
    """Tokens by kind; what is no count is 0."""
    cache = {"read": count(read), "write": count(write)}
    return {"input": count(input), "output": count(output), "reasoning": count(reasoning), "cache": cache}


def count(value: Json) -> int:
    """A count of tokens; 0 for anything else."""
    return int(value) if shapes.is_number(value) and 0 <= value < 1e15 else 0


def first_prompt(messages: list[RawMessage]) -> str:
    """The beginning of the first prompt that a person wrote."""
    for message in messages:
        for part in message.parts if message.info["role"] == "user" else ():
            if isinstance(part, dict) and part.get("type") == "text" and not part.get("synthetic"):
                line = " ".join(str(part["text"]).split())
                if line:
                    return line if len(line) <= IMPORTED_TITLE_CHARS else f"{line[: IMPORTED_TITLE_CHARS - 1]}…"
    return ""


def data_url(mime: Json, data: Json) -> RawObject:
    """A file part for base64 data."""
    kind = mime if isinstance(mime, str) and mime else "application/octet-stream"
    return {"type": "file", "mime": kind, "url": f"data:{kind};base64,{data if isinstance(data, str) else ''}"}


def rest(line: RawObject, *mapped: str) -> RawObject:
    """The fields of an object that are not mapped."""
    return {key: value for key, value in line.items() if key not in mapped}


def rest_as(name: str, line: RawObject, *mapped: str) -> RawObject:
    """The fields of an object that are not mapped, under a name; nothing if there are none."""
    kept = rest(line, *mapped)
    return {name: kept} if kept else {}


def word(value: Json) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""


def objects(value: Json) -> list[RawObject]:
    """The objects of a list; none of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
