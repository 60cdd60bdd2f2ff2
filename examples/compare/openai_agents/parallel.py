import asyncio

from agents import Agent, Runner


async def main() -> None:
    agent = Agent(name="Pilot")
    answers = await asyncio.gather(*(Runner.run(agent, place) for place in ("bay", "harbour", "cape")))
    print(sorted(answer.final_output for answer in answers))


asyncio.run(main())
