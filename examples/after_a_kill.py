"""A script that may be killed at any line and run again: what has an answer is not asked again.

Each prompt has an id. After ``kill -9`` the same script goes on where it was; a call that was running is not run twice.
"""

import sys

import turnkeeper

STEPS = ("Read the log.", "Find the error.", "Write the report.")


def model(request: turnkeeper.ModelRequest) -> str:
    """Answers, and says on standard error that it was asked, so that this runs without a key."""
    print("a provider was asked", file=sys.stderr)
    return f"Done after {len(request.messages)} messages."


with turnkeeper.open_sync(
    "sqlite:report.db", provider=turnkeeper.provider(model), settings=turnkeeper.Settings(titles=False)
) as tk:
    session = tk.create(id="ses_report")
    for step in STEPS:
        print(step, tk.ask(step, session=session, id=step).text, flush=True)
