"""One history, two models: a fork costs nothing, and both go on from the same words."""

import asyncio

import turnkeeper

HOST = {"protocol": "openai-chat", "options": {"baseURL": "http://localhost:1/v1"}}
CONFIG = {
    "model": "acme/large",
    "provider": {"acme": {**HOST, "models": {"large": {"cost": {"input": 3, "output": 15}}, "small": {}}}},
}


def model(request: turnkeeper.ModelRequest) -> str:
    """Two models, so that this runs without a key. The large one says more."""
    return "Reef the main and run." if request.model.id == "large" else "Reef."


async def main() -> None:
    settings = turnkeeper.Settings(titles=False)
    async with turnkeeper.open("memory:", config=CONFIG, provider=turnkeeper.provider(model), settings=settings) as tk:
        first = await tk.ask("The wind is rising. We are two, in a small boat.")
        forks = [await tk.fork(first.session_id) for _ in range(2)]
        answers = await asyncio.gather(
            tk.ask("What do we do?", session=forks[0], model="acme/large"),
            tk.ask("What do we do?", session=forks[1], model="acme/small"),
        )
        for answer in answers:
            print(f"{answer.model}: {answer.text}")
        print(len((await tk.messages(first.session_id)).items), "messages in the first session")


asyncio.run(main())
