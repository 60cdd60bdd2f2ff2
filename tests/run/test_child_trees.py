"""Trees of Child Sessions: they finish, and every cost in them is accounted once."""

from collections.abc import AsyncGenerator, Sequence

from children import AGENTS, TOOLS_AND_TASK, calls

from turnkeeper.core.family import Kin, family
from turnkeeper.model import stream as s
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.request import ModelRequest, Text, ToolTurn, UserTurn
from turnkeeper.model.stream import StreamEvent
from turnkeeper.testing.harness import Play

LEVELS, WIDTH = 3, 4
INNER = sum(WIDTH**level for level in range(LEVELS))
"""Sessions that have children: they answer twice, the others once."""
LEAVES = WIDTH**LEVELS
PRICE = 0.003
"""Dollars for each answer."""


class Spreading:
    """A model that hands its work to as many agents as the tree is wide, down to the last level."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        yield [s.Start(), s.StartStep()]
        last = request.messages[-1]
        level = len(_path(request)) if not isinstance(last, ToolTurn) else LEVELS
        if level < LEVELS:
            for number in range(WIDTH):
                given = {"description": "Do", "prompt": f"{_path(request)}{number}", "subagent_type": "helper"}
                yield [s.ToolCall(id=f"call_{number}", name="task", input=given, raw="")]
        else:
            yield [s.TextDelta(id="t", text=f"{_path(request)} is done"), s.TextEnd(id="t")]
        reason = "tool-calls" if level < LEVELS else "stop"
        yield [s.FinishStep(reason=reason, usage=s.Usage(input=1000, output=0)), s.Finish()]


def _path(request: ModelRequest) -> str:
    """Where in the tree a session is: a digit for each level."""
    said = next(one for one in request.messages if isinstance(one, UserTurn))
    words = next(part.text for part in said.content if isinstance(part, Text))
    return words if words.isdigit() else ""


def everyone(kin: Kin) -> list[Kin]:
    return [kin, *(one for child in kin.children for one in everyone(child))]


async def test_a_tree_of_three_levels_finishes_and_every_cost_counts_once(play: Play) -> None:
    helper = {**AGENTS["agent"]["helper"], "permission": {"task": "allow"}}
    config = {"agent": {"helper": helper}, "subagent_depth": LEVELS}
    async with play(Spreading(), tools=TOOLS_AND_TASK, config=config) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        below = await stage.tk.children(session, recursive=True)
        assert len(below) == INNER - 1 + LEAVES
        rows = [row async for row in stage.tk.ledger()]
        assert len({(row.session_id, row.message_id) for row in rows}) == len(rows) == 2 * INNER + LEAVES
        tree = family(await stage.tk.get(session), below, {})
        assert round(sum(row.cost for row in rows), 6) == tree.total_cost == round(PRICE * (2 * INNER + LEAVES), 6)
        assert tree.cost == round(2 * PRICE, 6)
        for kin in everyone(tree):
            own = [row.cost for row in rows if row.session_id == kin.id]
            assert round(sum(own), 6) == kin.cost
            assert len(kin.children) == len(await calls(stage, kin.id))
            assert all(isinstance(state, ToolCompleted) for state in await calls(stage, kin.id))
        assert stage.tk.running == frozenset()
        assert await stage.is_sound(session)
