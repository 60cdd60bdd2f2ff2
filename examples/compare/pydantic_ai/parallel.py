import asyncio

from pydantic_ai import Agent


async def main() -> None:
    agent = Agent("openai:gpt-5-mini")
    answers = await asyncio.gather(*(agent.run(place) for place in ("bay", "harbour", "cape")))
    print(sorted(answer.output for answer in answers))


asyncio.run(main())
