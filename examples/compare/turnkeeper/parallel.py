import asyncio

import turnkeeper


async def main() -> None:
    async with turnkeeper.open("memory:") as tk:
        answers = await asyncio.gather(*(tk.ask(place) for place in ("bay", "harbour", "cape")))
    print(sorted(answer.text for answer in answers))


asyncio.run(main())
