"""A run on a server, shown here: what is sent, and what its end means."""

from typing import TYPE_CHECKING

from turnkeeper.client import Client
from turnkeeper.model.refusal import NotFound
from turnkeeper.run.coordinator import Outcome

if TYPE_CHECKING:
    from turnkeeper.cli.live import Live
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.prompt import Prompt


async def send(client: Client, live: "Live", session_id: str, prompt: "Prompt") -> int:
    """Send a prompt and show the session until it rests."""

    async def work() -> Outcome:
        from turnkeeper.core.next_action import REFUSED, is_refused

        try:
            last = await client.prompt(session_id, prompt)
        except NotFound:
            if not live.is_stopped:
                raise
            return Outcome(kind="interrupted")  # Stopped before anything was said.
        is_over = any(is_refused(part) for part in last.parts)
        return Outcome(kind="rested", reason=REFUSED if is_over else "answered")

    return await live.run(client, session_id, work)


async def shell(
    client: Client, live: "Live", session_id: str, command: str, agent: str | None, model: "ModelChoice | None"
) -> int:
    """Run a command of the user's there; no model is asked."""

    async def work() -> Outcome:
        await client.shell(session_id, command, agent=agent, model=model)
        return Outcome(kind="rested", reason="done")

    return await live.run(client, session_id, work)


async def compact(client: Client, live: "Live", session_id: str, model: "ModelChoice | None") -> int:
    """Compact the session there and show its summary."""

    async def work() -> Outcome:
        await client.compact(session_id, model=model)
        return Outcome(kind="rested", reason="done")

    return await live.run(client, session_id, work, shows_summary=True)
