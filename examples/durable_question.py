"""A question that outlives the process that asked it.

``python durable_question.py ask`` starts the work. The model asks a question; the process may be killed. A day later,
in another process, ``list`` shows it, ``answer North`` answers it, and ``ask`` goes on where it was.
"""

import sys

import turnkeeper

QUESTION = {
    "question": "Which harbour?",
    "header": "Harbour",
    "options": [{"label": "North", "description": "Deep water"}, {"label": "South", "description": "Near"}],
}


def model(request: turnkeeper.ModelRequest) -> turnkeeper.Call | str:
    """A model that asks before it decides, so that this runs without a key."""
    last = request.messages[-1]
    if isinstance(last, turnkeeper.ToolTurn):
        return "North it is." if "North" in str(last.results) else "South, then."
    return turnkeeper.Call(id="", name="question", input={"questions": [QUESTION]})


def main(command: str, *words: str) -> None:
    # No asker in this process: requests wait in the log until any process answers them.
    settings = turnkeeper.Settings(ask=None, question=None, titles=False)
    provider = turnkeeper.provider(model)
    with turnkeeper.open_sync("sqlite:voyage.db", provider=provider, settings=settings) as tk:
        if command == "ask":
            print(tk.ask("Plan the voyage.", id="voyage").text, flush=True)
        elif command == "list":
            for request in tk.questions():
                print("waits:", request.questions[0].question)
        elif command == "answer":
            [request] = tk.questions()
            print("asked:", request.questions[0].question)
            tk.answer(request.id, [[" ".join(words)]], resume=False)


if len(sys.argv) < 2:
    sys.exit(__doc__)
main(*sys.argv[1:])
