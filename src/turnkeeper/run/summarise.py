"""Have a Summary written: one call, a second if that failed, else a digest without a model."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from turnkeeper.context.texts import text
from turnkeeper.core.compaction import Split
from turnkeeper.core.retry import delay, retryable
from turnkeeper.core.summary import (
    Contract,
    chunks,
    contract,
    digest,
    final_text,
    folded,
    question,
    serialise,
    target,
    unusable,
    verbatim,
)
from turnkeeper.core.usage import bill
from turnkeeper.core.window import CHARS_PER_TOKEN, Window, answer_max, estimate, usable
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.event import UsageRecorded
from turnkeeper.model.failure import Failure
from turnkeeper.model.request import ModelRequest, Text, UserTurn
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value
from turnkeeper.plugins.hooks import COMPACTING
from turnkeeper.plugins.payloads import CompactingInput, CompactingOutput
from turnkeeper.plugins.plugin_set import NONE as NO_PLUGINS
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.providers.one_shot import OneShotAnswer, ask
from turnkeeper.providers.provider import Provider
from turnkeeper.run.turn import Surroundings

ROOM: Final = 100_000
"""How many tokens a summariser is given at once if its limit is unknown."""


class Draft(Value):
    """What a summariser is about to be asked: further ``context``, or a ``prompt`` in the place of ours."""

    context: tuple[str, ...] = ()
    prompt: str | None = None


def _as_it_is(session_id: str, draft: Draft) -> Draft:
    return draft


def _goes_on(session_id: str, overflow: bool) -> bool:
    return True


class Hooks(msgspec.Struct, frozen=True):
    """The program's hooks that may change a compaction, before plugins do; by default they change nothing."""

    compacting: Callable[[str, Draft], Draft] = _as_it_is
    """opencode's ``experimental.session.compacting``: session and draft in, draft out."""
    autocontinue: Callable[[str, bool], bool] = _goes_on
    """opencode's ``experimental.compaction.autocontinue``: whether work goes on by itself after a compaction."""


class Written(Value):
    """A Summary and what it cost. ``problem`` says why no model's answer could be used, if it is a digest."""

    text: str
    problem: str | None = None
    bills: tuple[UsageRecorded, ...] = ()


class Summariser(msgspec.Struct):
    """Writes one Summary."""

    world: Surroundings
    provider: Provider
    model: ModelInfo
    agent: Agent
    message_id: str
    window: Window
    hooks: Hooks
    plugins: PluginSet = NO_PLUGINS
    _bills: list[UsageRecorded] = msgspec.field(default_factory=list)
    _calls: int = 0

    async def write(self, session_id: str, split: Split, todos: Sequence[Todo], *, room: int | None) -> Written:
        """The Summary of what is cut off. ``room`` is the usable window of the model that will read it."""
        texts = [serialise(entry) for entry in split.head]
        head = estimate("\n\n".join(texts)) + estimate(split.previous or "")
        terms = contract(split.head, (*split.tail, *split.pending), todos, target(room, head), split.previous)
        draft = await self._draft(session_id)
        own = (usable(self.model.limits, self.window) or ROOM) - terms.tokens_max * 3
        pieces = chunks(texts, max(own, terms.tokens_max) * CHARS_PER_TOKEN)
        previous = split.previous
        for piece in pieces[:-1]:
            previous = await self._fold(piece, previous, terms, draft)
        if not pieces:
            return Written(text=digest(terms, previous, split.head), bills=tuple(self._bills))
        answer = await self._answer(_question(pieces[-1], previous, terms, draft))
        problem = unusable(answer.failure, answer.text, is_call=bool(answer.calls))
        said = answer.text if problem is None else None
        found = final_text(said, terms, split.head, previous, verbatim(texts, split.previous), tokens_max=head)
        return Written(text=found, problem=problem, bills=tuple(self._bills))

    async def _draft(self, session_id: str) -> Draft:
        """The additions of the program and then of the plugins."""
        draft = self.hooks.compacting(session_id, Draft())
        given, asked = (
            CompactingOutput(context=[*draft.context], prompt=draft.prompt),
            CompactingInput(session_id=session_id),
        )
        found, _ = await self.plugins.trigger(COMPACTING, asked, given, session_id=session_id)
        return Draft(context=tuple(found.context), prompt=found.prompt)

    async def _answer(self, asked: str) -> OneShotAnswer:
        """The summariser's answer, asked for once more if the first cannot be used."""
        answer = await self._ask(asked)
        if unusable(answer.failure, answer.text, is_call=bool(answer.calls)) is None:
            return answer
        if answer.failure is not None and not await self._pause(answer.failure):
            return answer
        return await self._ask(asked)

    async def _fold(self, piece: str, previous: str | None, terms: Contract, draft: Draft) -> str:
        """The Summary after one more piece of a history that is too long for one request."""
        answer = await self._ask(_question(piece, previous, None, draft))
        return folded(answer.text if answer.failure is None else "", previous, piece, terms)

    async def _ask(self, asked: str) -> OneShotAnswer:
        self._calls += 1
        request = ModelRequest(
            model=self.model,
            system=(self.agent.prompt or text("compaction"),),
            messages=(UserTurn(content=(Text(text=asked),)),),
            temperature=self.agent.temperature,
            top_p=self.agent.top_p,
            output_max=answer_max(self.model.limits, self.window),
            options=self.agent.options,
        )
        answer = await ask(self.provider, request)
        message_id, attempt = self.message_id, self._calls
        self._bills.append(bill("compaction", self.model, answer.usage, message_id=message_id, attempt=attempt))
        return answer

    async def _pause(self, failure: Failure) -> bool:
        """Wait before the second call; False if another one cannot help."""
        if retryable(failure) is None:
            return False
        wait = delay(1, failure, now=self.world.mint.now(), rand=self.world.random())
        await self.world.sleep(wait / 1000)
        return True


def _question(piece: str, previous: str | None, terms: Contract | None, draft: Draft) -> str:
    asked = question(piece, previous, terms, draft.context)
    return f"{draft.prompt}\n\n{asked}" if draft.prompt is not None else asked
