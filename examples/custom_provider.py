"""A model of your own: a function that takes a request and gives text, whole or in pieces, and calls of tools."""

from collections.abc import AsyncIterator

import turnkeeper


async def parrot(request: turnkeeper.ModelRequest) -> AsyncIterator[str | turnkeeper.Call]:
    """Looks at the files, then repeats what the user said, word by word."""
    last = request.messages[-1]
    if isinstance(last, turnkeeper.UserTurn):
        yield turnkeeper.Call(id="", name="glob", input={"pattern": "*.py"})
        return
    said = next(turn for turn in reversed(request.messages) if isinstance(turn, turnkeeper.UserTurn))
    for part in said.content:
        if isinstance(part, turnkeeper.Text):
            for word in part.text.split():
                yield f"{word} "


with turnkeeper.open_sync(
    "memory:", provider=turnkeeper.provider(parrot), settings=turnkeeper.Settings(titles=False)
) as tk:
    for piece in (stream := tk.stream("Pieces of eight!")):
        print(piece.strip())
    print([part.tool for part in stream.answer.parts if isinstance(part, turnkeeper.ToolPart)])
