"""A script that asks once, by an id, and has a Child Session work. The tool of that hangs in the first life.

``python ask_child_script.py STORE LIFE [background]``
"""

import sys
from threading import Event

import turnkeeper

LIFE = sys.argv[2]


@turnkeeper.tool
def dig() -> str:
    """Dig."""
    sys.stdout.write("digging\n")
    sys.stdout.flush()
    if LIFE == "hangs":
        Event().wait()
    return "dug"


def model(request: turnkeeper.ModelRequest) -> turnkeeper.Call | str:
    """Hand the work on; the Child Session digs, and both report what came of their call."""
    is_root = any(tool.name == "task" for tool in request.tools)
    last = request.messages[-1]
    if isinstance(last, turnkeeper.ToolTurn):
        return f"root heard: {last}" if is_root else "the child is done"
    if is_root and "<task " in str(last):
        return f"root read: {last}"
    if not is_root:
        return turnkeeper.Call(id="", name="dig", input={})
    task = {"description": "Dig", "prompt": "dig", "subagent_type": "general", "background": "background" in sys.argv}
    return turnkeeper.Call(id="", name="task", input=task)


def main(store: str) -> None:
    """Ask, and print the answer."""
    settings = turnkeeper.Settings(titles=False, snapshots=False)
    with turnkeeper.open_sync(store, provider=turnkeeper.provider(model), tools=[dig], settings=settings) as tk:
        answer = tk.ask("go", id="go")
        outcome = tk.wait_family(answer.session_id)
        sys.stdout.write(f"answer: {tk.messages(answer.session_id).items[-1].parts}\n{outcome.kind}\n")


if __name__ == "__main__":
    main(sys.argv[1])
