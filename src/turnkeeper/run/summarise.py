"""Have a Summary written: at most two calls for one that fits its contract, else a digest without a model."""

from collections.abc import Sequence
from typing import Final

import msgspec

from turnkeeper.context.texts import text
from turnkeeper.core.compaction import Split
from turnkeeper.core.retry import delay, retryable
from turnkeeper.core.summary import (
    Contract,
    breaches,
    chunks,
    completed,
    contract,
    correction,
    cut,
    digest,
    question,
    serialise,
    target,
)
from turnkeeper.core.window import CHARS_PER_TOKEN, Window, estimate, usable
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.event import UsageRecorded
from turnkeeper.model.failure import Failure
from turnkeeper.model.request import ModelRequest, Text, UserTurn
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value
from turnkeeper.providers.provider import Provider
from turnkeeper.run.ask import Answer, ask, bill
from turnkeeper.run.hooks import Draft, Hooks
from turnkeeper.run.turn import Surroundings

ROOM: Final = 100_000
"""How many tokens a summariser is given at once if nobody knows how many it takes."""
CALLED: Final = "it calls tools instead of answering"


class Written(Value):
    """A Summary and what it cost. ``is_digest``: no model's answer could be used."""

    text: str
    is_digest: bool = False
    bills: tuple[UsageRecorded, ...] = ()


class Summariser(msgspec.Struct):
    """Writes one Summary."""

    world: Surroundings
    provider: Provider
    model: ModelInfo
    agent: Agent
    message_id: str
    hooks: Hooks
    _bills: list[UsageRecorded] = msgspec.field(default_factory=list)
    _calls: int = 0

    async def write(
        self, session_id: str, split: Split, todos: Sequence[Todo], *, room: int | None, window: Window
    ) -> Written:
        """The Summary of what is cut off. ``room`` is the usable window of the model that will read it."""
        texts = [serialise(entry) for entry in split.head]
        head = estimate("\n\n".join(texts)) + estimate(split.previous or "")
        terms = contract(split.head, (*split.tail, *split.pending), todos, target(room, head), split.previous)
        draft = self.hooks.compacting(session_id, Draft())
        own = (usable(self.model.limits, window) or ROOM) - terms.tokens_max * 3
        pieces = chunks(texts, max(own, terms.tokens_max) * CHARS_PER_TOKEN)
        previous = split.previous
        for piece in pieces[:-1]:
            previous = await self._fold(piece, previous, terms, draft)
        found = await self._best(pieces[-1], previous, terms, draft) if pieces else None
        if found is None:
            return Written(text=digest(terms, previous, split.head), is_digest=True, bills=tuple(self._bills))
        return Written(text=found, bills=tuple(self._bills))

    async def _best(self, piece: str, previous: str | None, terms: Contract, draft: Draft) -> str | None:
        """A Summary that fits its contract, from two calls at the most; None if neither can be used."""
        asked = _question(piece, previous, terms, draft)
        answer = await self._ask(asked)
        wrong = _wrong(answer, terms)
        if not wrong:
            return answer.text.strip()
        if answer.failure is not None:
            await self._pause(answer.failure)
        else:
            asked = f"{asked}\n\n{correction(cut(answer.text, terms.tokens_max * CHARS_PER_TOKEN), wrong)}"
        second = await self._ask(asked)
        if not _wrong(second, terms):
            return second.text.strip()
        # A good Summary that forgot a path is better than a digest: what it forgot is added by code.
        return next((whole for one in (second, answer) if (whole := completed(one.text, terms))), None)

    async def _fold(self, piece: str, previous: str | None, terms: Contract, draft: Draft) -> str:
        """What is known after one more piece of a history that is too long to be read at once."""
        answer = await self._ask(_question(piece, previous, None, draft))
        if answer.failure is None and answer.text.strip() and estimate(answer.text) <= terms.tokens_max:
            return answer.text.strip()
        return cut("\n\n".join(one for one in (previous, piece) if one), terms.tokens_max * CHARS_PER_TOKEN)

    async def _ask(self, asked: str) -> Answer:
        self._calls += 1
        request = ModelRequest(
            model=self.model,
            system=(self.agent.prompt or text("compaction"),),
            messages=(UserTurn(content=(Text(text=asked),)),),
            temperature=self.agent.temperature,
            top_p=self.agent.top_p,
            options=self.agent.options,
        )
        answer = await ask(self.provider, request)
        self._bills += bill(self.model, answer.usage, "compaction", message_id=self.message_id, attempt=self._calls)
        return answer

    async def _pause(self, failure: Failure) -> None:
        """Wait before the second call if that may help."""
        if retryable(failure) is not None:
            wait = delay(1, failure, now=self.world.mint.now(), rand=self.world.random())
            await self.world.sleep(wait / 1000)


def _question(piece: str, previous: str | None, terms: Contract | None, draft: Draft) -> str:
    asked = question(piece, previous, terms, draft.context)
    return f"{draft.prompt}\n\n{asked}" if draft.prompt is not None else asked


def _wrong(answer: Answer, terms: Contract) -> list[str]:
    wrong = [CALLED] if answer.called else []
    if answer.failure is not None:
        wrong.append("it was not answered")
    return [*wrong, *breaches(answer.text, terms)]
