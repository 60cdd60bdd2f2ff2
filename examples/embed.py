"""An agent in ten lines. Without an API key the offline model answers, by simple rules."""

import asyncio

import turnkeeper


async def main() -> None:
    async with turnkeeper.open("sqlite:sessions.db") as tk:
        answer = await tk.ask("list the files")
        print(answer.text)
        print(f"{answer.usage.input} tokens in, ${answer.cost}, kept in {answer.session_id}")


asyncio.run(main())
