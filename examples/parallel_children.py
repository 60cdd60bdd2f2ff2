"""Two agents that work at the same time, each in a child session of its own, for one that waits for both."""

from collections.abc import AsyncIterator

import turnkeeper

SCOUT = turnkeeper.Agent("scout", "Look at the coast that you are given.", description="Looks at one coast.")
LEAD = turnkeeper.Agent("lead", "Send a scout to each coast.", children=(SCOUT,), permission={"task": "allow"})


async def model(request: turnkeeper.ModelRequest) -> AsyncIterator[turnkeeper.Call | str]:
    """A model for all of them, so that this runs without a key. Only the lead has the tool that hands work on."""
    last = request.messages[-1]
    if isinstance(last, turnkeeper.ToolTurn):
        yield f"{len(last.results)} coasts seen."
    elif "task" not in [tool.name for tool in request.tools]:
        yield "Nothing but sand."
    else:
        for coast in ("north", "south"):
            task = {"description": f"the {coast}", "prompt": f"Look at the {coast} coast.", "subagent_type": "scout"}
            yield turnkeeper.Call(id="", name="task", input=task)


settings, provider = turnkeeper.Settings(titles=False), turnkeeper.provider(model)
with turnkeeper.open_sync("memory:", agents=[LEAD], provider=provider, settings=settings) as tk:
    answer = tk.ask("What is around us?", agent="lead")
    print(answer.text)
    for child in sorted(tk.children(answer.session_id), key=lambda one: one.title):
        [part] = [one for one in tk.messages(child.id).items[-1].parts if isinstance(one, turnkeeper.TextPart)]
        print(f"{child.title}: {part.text}")
