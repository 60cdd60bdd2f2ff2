"""Settling a tool call: whether it runs, and its final state. The first matching row wins.

| The call | Decision |
|---|---|
| exceeds the number of calls of one answer | refused, with advice |
| is the structured answer | taken, or refused with the violations of the schema |
| is made in the last step | refused; a metadata key keeps the loop from sending the result |
| is the third identical one in a row, and a rule denied those before it | refused; the session rests |
| is the third identical one in a row | runs if the user permits it |
| is any other | runs, by the rules of its tool |
"""

from collections.abc import Sequence

from turnkeeper.core.doom_loop import is_denied_loop, is_doom_loop
from turnkeeper.core.limits import CALLS_PER_TURN_MAX
from turnkeeper.core.next_action import DISABLED, STRUCTURED_TOOL
from turnkeeper.core.permission import DENIED
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.parts.tool import RunningTime, SettledTime, ToolCompleted, ToolError, ToolRunning
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.text.json_schema import violations
from turnkeeper.text.surrogates import clean


class Refused(Value):
    """The call does not run; the model reads why."""

    text: str
    metadata: JsonObject = {}


class AnswerTaken(Value):
    """The call is the structured answer, and fits its schema."""


class Runs(Value):
    """The call runs. ``is_doom_loop``: only if the user permits the repetition."""

    is_doom_loop: bool = False


def judge_call(
    part: ToolPart, earlier: Sequence[Part], number: int, *, schema: JsonObject | None, is_last: bool
) -> Refused | AnswerTaken | Runs:
    """Whether a call runs. ``number`` counts the calls of its answer from 0; ``earlier`` are the parts before it."""
    if number >= CALLS_PER_TURN_MAX:
        return Refused(text=f"One answer may make {CALLS_PER_TURN_MAX} calls. Do the rest in your next answer.")
    if part.tool == STRUCTURED_TOOL and schema is not None:
        wrong = "\n".join(violations(part.state.input, schema))
        correct = f"The answer does not fit the schema:\n{wrong}\nCorrect it and call again."
        return Refused(text=correct) if wrong else AnswerTaken()
    if is_last:
        text = "The step limit is reached: no tool runs until the user speaks."
        return Refused(text=text, metadata={DISABLED: True})
    if is_denied_loop(earlier, part.tool, part.state.input):
        # The user is not asked about a call that is denied all the same, and the loop ends here.
        text = f"{DENIED}, and it is the third like it: it is not tried again until the user speaks."
        return Refused(text=text, metadata={"rejected": True})
    return Runs(is_doom_loop=is_doom_loop(earlier, part.tool, part.state.input))


def reported(running: ToolRunning, title: str | None, metadata: JsonObject) -> ToolRunning:
    """The state of a running call after a progress report, merged with earlier reports."""
    known = {**(running.metadata or {}), **metadata}
    return running.but(title=clean(title) if title else running.title, metadata=known)


def begun(part: ToolPart, at: int) -> ToolPart:
    """A running call whose time begins at ``at``: when it is run, or run again, without its waits for the user."""
    state = part.state
    return part.but(state=state.but(time=RunningTime(start=at))) if isinstance(state, ToolRunning) else part


def waited(part: ToolPart, ms: int) -> ToolPart:
    """A running call after a wait for the user, which is not part of its time."""
    return begun(part, part.state.time.start + ms) if isinstance(part.state, ToolRunning) else part


def completed(part: ToolPart, now: int, output: str, *, title: str, metadata: JsonObject) -> ToolCompleted:
    """The state of a call that is done."""
    time, raw = _settled(part, now)
    return ToolCompleted(input=part.state.input, raw=raw, output=output, title=title, metadata=metadata, time=time)


def failed(part: ToolPart, now: int, text: str, metadata: JsonObject) -> ToolError:
    """The state of a call that failed, with the progress it had reported."""
    state = part.state
    time, raw = _settled(part, now)
    merged = {**((state.metadata if isinstance(state, ToolRunning) else None) or {}), **metadata}
    return ToolError(input=state.input, raw=raw, error=clean(text), metadata=merged or None, time=time)


def _settled(part: ToolPart, now: int) -> tuple[SettledTime, str | None]:
    """The time of the call, and its input as the model wrote it."""
    match part.state:
        case ToolRunning(time=time, raw=raw):
            return SettledTime(start=time.start, end=now), raw
        case _:
            return SettledTime(start=now, end=now), None
