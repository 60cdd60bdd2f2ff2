import asyncio

from agents import Agent, Runner, TResponseInputItem


async def main() -> None:
    agent = Agent(name="Pilot")
    result = Runner.run_streamed(agent, "Tell me of the wind.")
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            print(event.data.delta)
            said: TResponseInputItem = {"role": "assistant", "content": event.data.delta}
            result.cancel()
    asked: list[TResponseInputItem] = [*result.to_input_list(), said, {"role": "user", "content": "Go on."}]
    print((await Runner.run(agent, asked)).final_output)


asyncio.run(main())
