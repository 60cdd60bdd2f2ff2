"""The laws: the requirements of all providers on a request, as predicates, independent of the code that lowers it.

A law returns the reason why a request breaks it, or None. ``check`` returns all broken laws by name.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    Media,
    ModelRequest,
    Reasoning,
    Result,
    SystemTurn,
    Text,
    ToolTurn,
    UserTurn,
)
from turnkeeper.model.value import encode

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MIME = re.compile(r"[^/\s]+/[^/\s]+")
BASE64 = re.compile(r"[A-Za-z0-9+/]+=*")

Law = Callable[[ModelRequest], str | None]


def the_user_speaks_first(request: ModelRequest) -> str | None:
    """The first turn is one of the user."""
    turns = [m for m in request.messages if not isinstance(m, SystemTurn)]
    if not turns:
        return "there is no turn"
    return None if isinstance(turns[0], UserTurn) else f"the first turn is {turns[0]}"


def the_model_is_to_speak(request: ModelRequest) -> str | None:
    """The last turn is not one of the model."""
    turns = [m for m in request.messages if not isinstance(m, SystemTurn)]
    return "the last turn is the assistant's" if turns and isinstance(turns[-1], AssistantTurn) else None


def every_call_has_its_result(request: ModelRequest) -> str | None:
    """The turn after a turn with calls has exactly their results, in order."""
    for index, message in enumerate(request.messages):
        if not isinstance(message, AssistantTurn):
            continue
        calls = [part.id for part in message.content if isinstance(part, Call) and not part.executed]
        after = request.messages[index + 1] if index + 1 < len(request.messages) else None
        results = [result.call_id for result in after.results] if isinstance(after, ToolTurn) else []
        if calls != results:
            return f"calls {calls} are followed by results {results}"
    return None


def every_result_has_its_call(request: ModelRequest) -> str | None:
    """A turn of results follows a turn with calls."""
    for index, message in enumerate(request.messages):
        if not isinstance(message, ToolTurn):
            continue
        before = request.messages[index - 1] if index else None
        if not isinstance(before, AssistantTurn):
            return f"results {[r.call_id for r in message.results]} follow no call"
        if not message.results:
            return "a turn of results is empty"
    return None


def hosted_calls_are_paired_inside(request: ModelRequest) -> str | None:
    """A call that the provider ran is followed by its result in the same turn."""
    for message in request.messages:
        if isinstance(message, AssistantTurn):
            calls = [part.id for part in message.content if isinstance(part, Call) and part.executed]
            results = [part.call_id for part in message.content if isinstance(part, Result)]
            if calls != results:
                return f"hosted calls {calls} have results {results}"
    return None


def call_ids_are_unique(request: ModelRequest) -> str | None:
    """Every call has a different id, which the strictest provider accepts."""
    seen: set[str] = set()
    for call in _calls(request):
        if call.id in seen:
            return f"{call.id!r} is used twice"
        if not NAME.fullmatch(call.id):
            return f"{call.id!r} is not a plain word of at most 64 characters"
        seen.add(call.id)
    return None


def names_are_plain(request: ModelRequest) -> str | None:
    """Tool names, called or offered, are plain words."""
    names = [call.name for call in _calls(request)] + [tool.name for tool in request.tools]
    return next((f"{name!r} is not a plain word" for name in names if not NAME.fullmatch(name)), None)


def inputs_are_objects(request: ModelRequest) -> str | None:
    """The input of a call is a JSON object."""
    return next((f"{c.id} has {c.input!r}" for c in _calls(request) if not isinstance(c.input, dict)), None)


def nothing_is_empty(request: ModelRequest) -> str | None:
    """No turn and no text is empty."""
    for message in request.messages:
        match message:
            case UserTurn(content=content) | AssistantTurn(content=content) if not content:
                return "a turn is empty"
            case SystemTurn(text=""):
                return "a system turn is empty"
            case _:
                pass
    for text in _texts(request):
        if not text:
            return "a text is empty"
    return None


def users_do_not_send_blanks(request: ModelRequest) -> str | None:
    """No text of the user is only white space."""
    for message in request.messages:
        if isinstance(message, UserTurn):
            for part in message.content:
                if isinstance(part, Text) and not part.text.strip():
                    return "the user says nothing but white space"
    return None


def everything_can_be_written(request: ModelRequest) -> str | None:
    """The request can be encoded as JSON in UTF-8."""
    try:
        encode([request.system, request.tools, tuple(request.messages)])
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        return f"it cannot be written: {error}"
    return None


def media_can_be_read(request: ModelRequest) -> str | None:
    """A file has a media type, and content or a URL."""
    for media in _media(request):
        if not MIME.fullmatch(media.mime) or not (media.data or media.url):
            return f"{media!r} has no type or no content"
        if media.data is not None and not BASE64.fullmatch(media.data):
            return f"{media.data[:40]!r} is not base64"
    return None


LAWS: dict[str, Law] = {
    law.__name__: law
    for law in (
        the_user_speaks_first,
        the_model_is_to_speak,
        every_call_has_its_result,
        every_result_has_its_call,
        hosted_calls_are_paired_inside,
        call_ids_are_unique,
        names_are_plain,
        inputs_are_objects,
        nothing_is_empty,
        users_do_not_send_blanks,
        everything_can_be_written,
        media_can_be_read,
    )
}


def check(request: ModelRequest) -> dict[str, str]:
    """The laws that a request breaks, with the reasons."""
    broken = ((name, law(request)) for name, law in LAWS.items())
    return {name: reason for name, reason in broken if reason is not None}


def _calls(request: ModelRequest) -> Iterator[Call]:
    for message in request.messages:
        if isinstance(message, AssistantTurn):
            yield from (part for part in message.content if isinstance(part, Call))


def _media(request: ModelRequest) -> Iterator[Media]:
    for message in request.messages:
        if isinstance(message, UserTurn):
            yield from (part for part in message.content if isinstance(part, Media))
        if isinstance(message, ToolTurn):
            for result in message.results:
                yield from (part for part in result.output if isinstance(part, Media))


def _texts(request: ModelRequest) -> Iterator[str]:
    yield from request.system
    for message in request.messages:
        match message:
            case SystemTurn(text=text):
                yield text
            case UserTurn(content=content):
                yield from (part.text for part in content if isinstance(part, Text))
            case AssistantTurn(content=content):
                yield from (part.text for part in content if isinstance(part, Text))
                yield from _outputs(part for part in content if isinstance(part, Result))
                # Reasoning may be empty where only its encrypted form is kept.
                yield from (part.text for part in content if isinstance(part, Reasoning) and part.text)
            case ToolTurn(results=results):
                yield from _outputs(results)


def _outputs(results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        yield from (part.text for part in result.output if isinstance(part, Text))
