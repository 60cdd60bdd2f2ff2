"""Asking: a prompt in, its answer out, whole or as it comes."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from turnkeeper.api.question import AskedQuestion
from turnkeeper.api.running import Running
from turnkeeper.api.streamed_answer import StreamedAnswer
from turnkeeper.core.arguments import checked
from turnkeeper.model.answer import Answer, TurnFailed
from turnkeeper.model.message import ModelName
from turnkeeper.model.refusal import Conflict, Invalid
from turnkeeper.model.session import Session

if TYPE_CHECKING:
    from turnkeeper.api.agent import Agent
    from turnkeeper.model.prompt import Prompt
    from turnkeeper.run.coordinator import Outcome
    from turnkeeper.sessions.ask import Sent
    from turnkeeper.sessions.session_state import SessionState

T = TypeVar("T")
SESSION_PREFIX = "ses_"


@checked
class Asking(Running):
    """The methods that give answers. Imports are inside of them, because programs that only read should start fast."""

    @overload
    async def ask(
        self,
        prompt: "str | Prompt",
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: "str | Agent | None" = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: None = None,
        check: bool = True,
    ) -> Answer[str]: ...

    @overload
    async def ask(
        self,
        prompt: "str | Prompt",
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: "str | Agent | None" = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: type[T],
        check: Literal[True] = True,
    ) -> Answer[T]: ...

    @overload
    async def ask(
        self,
        prompt: "str | Prompt",
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: "str | Agent | None" = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: type[T],
        check: bool,
    ) -> Answer[T | None]: ...

    async def ask(
        self,
        prompt: "str | Prompt",
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: "str | Agent | None" = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: type[Any] | None = None,
        check: bool = True,
    ) -> Answer[Any]:
        """Ask, wait until the session rests, and return the answer. Without a session a new one is created.

        ``output_type`` asks for structured output of this type: a msgspec Struct, a dataclass, a TypedDict or a
        built-in type. ``id`` makes it safe to ask again, for example in a script that was killed: a prompt with this id
        is sent once, an answer that is stored is returned without asking a provider, and a turn that was cut off or
        failed is continued. If another process runs the session, the prompt waits for its turn there; if that process
        dies, the session is taken over and the prompt is answered here, and no call is run again. Raises TurnFailed if
        there is no answer; with ``check=False`` the answer has the ``error`` instead. Cancelling the call does not stop
        the session: see ``stop``.
        """
        asked = self._question(prompt, id, agent, model, system, output_type)
        session_id = await self._session_for(session, id)
        sent = await self._send(asked, session_id)
        answer = await asked.answer(self.store, sent, (await self._settle(sent)).reason)
        if check and answer.error is not None:
            raise TurnFailed(answer.error, answer)
        return answer

    @overload
    def stream(
        self,
        prompt: "str | Prompt",
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: "str | Agent | None" = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: None = None,
        check: bool = True,
    ) -> StreamedAnswer[str]: ...

    @overload
    def stream(
        self,
        prompt: "str | Prompt",
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: "str | Agent | None" = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: type[T],
        check: Literal[True] = True,
    ) -> StreamedAnswer[T]: ...

    @overload
    def stream(
        self,
        prompt: "str | Prompt",
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: "str | Agent | None" = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: type[T],
        check: bool,
    ) -> StreamedAnswer[T | None]: ...

    def stream(
        self,
        prompt: "str | Prompt",
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: "str | Agent | None" = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: type[Any] | None = None,
        check: bool = True,
    ) -> StreamedAnswer[Any]:
        """Ask, and give the text as it comes: ``async for piece in (answer := tk.stream("...")): print(piece)``.

        When it has ended, ``answer.answer`` is the whole answer. The parameters are those of ``ask``, which see. The
        text of another turn of the model is set off by an empty line. In ``async with tk.stream("...") as answer:`` the
        turn is stopped when the block is left before its end.
        """
        if isinstance(prompt, str) and prompt.startswith(SESSION_PREFIX) and " " not in prompt:
            raise Invalid(f"stream takes a prompt, not the session {prompt!r:.80}; iter_messages reads its messages")
        asked = self._question(prompt, id, agent, model, system, output_type)
        assert self.group is not None, "the store was opened without a runtime"
        return StreamedAnswer(
            open_session=partial(self._session_for, session, id),
            subscribe=lambda session_id: self.subscribe(session_id=session_id),
            send=partial(self._send, asked),
            settle=self._settle,
            read=partial(asked.answer, self.store),
            stop=self.stop,
            group=self.group,
            check=check,
        )

    async def state(self, session_id: str, *, messages: int | None = None) -> "SessionState":
        """All about a session in one value: settings, status, messages, todos, waiting requests, cost, diffs, children.

        ``messages`` limits the messages to the newest ones. What it says held at one moment.
        """
        from turnkeeper.sessions import session_state

        rules = self.runtime.directories.rules if self.group is not None else None
        return await session_state.state(self.store, session_id, messages=messages, rules=rules)

    def _question(
        self,
        prompt: "str | Prompt",
        id: str | None,
        agent: "str | Agent | None",
        model: ModelName | None,
        system: str | None,
        output_type: type[Any] | None,
    ) -> AskedQuestion:
        from turnkeeper.api.agent import Agent

        if isinstance(agent, Agent):
            self.runtime.directories.own.add(agent.configuration())
            agent = agent.name
        return AskedQuestion(prompt, id=id, agent=agent, model=model, system=system, output_type=output_type)

    async def _session_for(self, session: str | Session | None, key: str | None) -> str:
        """The session to ask in: the given one, that of the key, or a new one."""
        from turnkeeper.sessions import ask

        if session is not None:
            session_id = session.id if isinstance(session, Session) else session
            await self.store.queries.state(session_id)
            return session_id
        directory = str(Path(self._directory).absolute())
        return (await self.create(id=ask.derived_session_id(directory, key) if key is not None else None)).id

    async def _send(self, asked: AskedQuestion, session_id: str) -> "Sent":
        from turnkeeper.sessions import ask

        try:
            return await ask.send(self.store, self.runtime, session_id, asked.prompt(session_id))
        except Conflict as error:
            if asked.key is None or type(error) is not Conflict:
                raise
            # The caller knows the prompt by this id, and not by the message id that is derived from it.
            raise Conflict(f"the prompt with the id {asked.key!r:.80}: {error}") from error

    async def _settle(self, sent: "Sent") -> "Outcome":
        from turnkeeper.sessions import ask

        return await ask.settle(self.store, self.runtime, sent)
