import asyncio

from pydantic_ai import Agent


async def main() -> None:
    async with Agent("openai-responses:gpt-5-mini").run_stream("Where is the wind?") as result:
        async for piece in result.stream_text(delta=True):
            print(piece, end="", flush=True)


asyncio.run(main())
