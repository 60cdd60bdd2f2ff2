import asyncio

from agents import Agent, Runner
from openai.types.responses import ResponseTextDeltaEvent


async def main() -> None:
    result = Runner.run_streamed(Agent(name="Pilot", model="gpt-5-mini"), "Where is the wind?")
    async for event in result.stream_events():
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
            print(event.data.delta, end="", flush=True)


asyncio.run(main())
