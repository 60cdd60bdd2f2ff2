import asyncio

from agents import Agent, Runner
from openai.types.responses import ResponseTextDeltaEvent


async def main() -> None:
    agent = Agent(name="Pilot", model="gpt-5-mini")
    result = Runner.run_streamed(agent, "Tell me of the wind.")
    async for event in result.stream_events():
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
            print(event.data.delta)
            said = {"role": "assistant", "content": event.data.delta}
            result.cancel()
            break
    asked = [{"role": "user", "content": "Tell me of the wind."}, said, {"role": "user", "content": "Go on."}]
    print((await Runner.run(agent, asked)).final_output)


asyncio.run(main())
