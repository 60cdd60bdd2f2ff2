"""An answer as a value of a type. It is asked for again if it does not fit."""

from typing import Annotated

import turnkeeper


class Forecast(turnkeeper.Struct):
    """The wind of one day."""

    wind: str
    force: Annotated[int, turnkeeper.Meta(ge=0, le=12, description="On the Beaufort scale.")]
    gusts: list[int] = []


# The script of a model, so that this runs without a key: its first answer does not fit.
MODEL = (
    turnkeeper.Scripted()
    .calls("StructuredOutput", wind="west", force=40)
    .then()
    .calls("StructuredOutput", wind="west", force=4, gusts=[6, 7])
)

with turnkeeper.open_sync("memory:", provider=MODEL, settings=turnkeeper.Settings(titles=False)) as tk:
    answer = tk.ask("West, about 4, gusts of 6 and 7.", output_type=Forecast)
    print(answer.output.wind, answer.output.force, max(answer.output.gusts))
