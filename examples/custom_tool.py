"""A function of your own that the model may call. Its docstring and its types are what the model is told."""

from typing import Annotated

import turnkeeper

TIDES = {"the bay": "6:12", "the harbour": "6:40"}


@turnkeeper.tool(read_only=True)
def tide(place: Annotated[str, turnkeeper.Meta(description="Where, for example 'the bay'.")], day: int = 0) -> str:
    """When the tide is high at a place, today or in some days."""
    if place not in TIDES:
        raise turnkeeper.ToolFailure(f"There is no gauge at {place!r}. There are: {', '.join(TIDES)}.")
    return f"High tide at {place} in {day} days: {TIDES[place]}"


# The script of a model, so that this runs without a key. With one, leave `provider` out.
MODEL = turnkeeper.Scripted().calls("tide", place="the lake").calls("tide", place="the bay").then().says("At 6:12.")

with turnkeeper.open_sync("memory:", tools=[tide], provider=MODEL, settings=turnkeeper.Settings(titles=False)) as tk:
    answer = tk.ask("When is high tide in the bay?")
    for part in answer.parts:
        match part:
            case turnkeeper.ToolPart(state=turnkeeper.ToolCompleted(output=output)):
                print("result:", output)
            case turnkeeper.ToolPart(state=turnkeeper.ToolError(error=error)):
                print("failure:", error)
    print(answer.text)
