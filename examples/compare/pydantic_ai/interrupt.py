import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart


async def main() -> None:
    agent = Agent("openai-responses:gpt-5-mini")
    async with agent.run_stream("Tell me of the wind.") as result:
        async for piece in result.stream_text(delta=True):
            print(piece)
            break
    history = [
        ModelRequest.user_text_prompt("Tell me of the wind."),
        ModelResponse(parts=[TextPart(piece)]),
    ]
    print((await agent.run("Go on.", message_history=history)).output)


asyncio.run(main())
