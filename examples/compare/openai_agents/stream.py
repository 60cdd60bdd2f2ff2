import asyncio

from agents import Agent, Runner


async def main() -> None:
    result = Runner.run_streamed(Agent(name="Pilot"), "Where is the wind?")
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            print(event.data.delta, end="", flush=True)


asyncio.run(main())
