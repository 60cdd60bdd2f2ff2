"""A fact that the model is told, and told again when it changes."""

import turnkeeper

winds = iter(["west", "west", "north"])


@turnkeeper.component("harbour/wind")
def wind() -> str | None:
    """Called before each turn. The model is told once, and then only what changed."""
    return f"The wind is {next(winds)}."


MODEL = turnkeeper.Scripted().says("Aye.").forever()

with turnkeeper.open_sync(
    "memory:", components=[wind], provider=MODEL, settings=turnkeeper.Settings(titles=False)
) as tk:
    session = tk.create()
    for prompt in ("Set sail.", "Steady.", "And now?"):
        tk.ask(prompt, session=session)
    first, *news = [text for text in MODEL.requests[-1].system if "wind" in text] + [
        turn.text for turn in MODEL.requests[-1].messages if isinstance(turn, turnkeeper.SystemTurn)
    ]
    print("at first:", first)
    print("news:", *news)
