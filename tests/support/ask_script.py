"""A script that asks once, by an id. Its model hangs in the first life, answers in the second and fails in others.

``python ask_script.py STORE LIFE``
"""

import sys
from pathlib import Path

import anyio

import turnkeeper


@turnkeeper.tool
def migrate() -> str:
    """Run the migration."""
    with Path("effects").open("a") as file:
        file.write("migrated\n")
    return "migrated"


MODELS = {
    "hangs": lambda: turnkeeper.Scripted().calls("migrate").then().says("The migration ").hangs(),
    "answers": lambda: turnkeeper.Scripted().says("is done."),
    "fails": lambda: turnkeeper.Scripted().fails(400, message="asked again"),
}


async def main(store: str, life: str) -> None:
    """Ask, and print what comes."""
    settings = turnkeeper.Settings(titles=False, snapshots=False)
    async with turnkeeper.open(store, provider=MODELS[life](), tools=[migrate], settings=settings) as tk:
        async for piece in (stream := tk.stream("Run the migration.", id="migration")):
            sys.stdout.write(f"{piece}\n")
            sys.stdout.flush()
        sys.stdout.write(f"answer: {stream.answer.text}\n")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
