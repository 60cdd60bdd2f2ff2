"""StreamedAnswer: the text of an answer as it comes, and the whole answer when it has ended."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import anyio
from anyio.abc import TaskGroup

from turnkeeper.bus import Overflow, Subscription
from turnkeeper.core.answer_pieces import AnswerPieces
from turnkeeper.core.limits import STOP_S
from turnkeeper.model.answer import Answer, TurnFailed
from turnkeeper.model.notification import AnyNotification
from turnkeeper.model.refusal import Invalid

if TYPE_CHECKING:
    from turnkeeper.run.coordinator import Outcome
    from turnkeeper.sessions.ask import Sent

T = TypeVar("T")


class StreamedAnswer(Generic[T]):
    """Iterates over the text of an answer. The prompt is sent at the first piece.

    Leaving the loop early does not stop the session. Leaving a block of ``async with`` before the answer has ended
    does: what was said until then is kept.
    """

    def __init__(
        self,
        *,
        open_session: Callable[[], Awaitable[str]],
        subscribe: Callable[[str], Subscription[AnyNotification]],
        send: "Callable[[str], Awaitable[Sent]]",
        settle: "Callable[[Sent], Awaitable[Outcome]]",
        read: "Callable[[Sent, str], Awaitable[Answer[T]]]",
        stop: Callable[[str], Awaitable[bool]],
        group: TaskGroup,
        check: bool,
    ) -> None:
        self._open_session, self._subscribe, self._send = open_session, subscribe, send
        self._settle, self._read, self._stop, self._group, self._check = settle, read, stop, group, check
        self._answer: Answer[T] | None = None
        self._session_id: str | None = None
        self._has_ended = False
        self._pieces = self._stream()
        self._is_read = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        self._is_read = True
        try:
            return await anext(self._pieces)
        finally:
            self._is_read = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Also after a cancellation: the rest of the answer would be paid for and not read.
        with anyio.move_on_after(STOP_S, shield=True):
            if not self._is_read:
                await self.aclose()
            if self._session_id is not None and not self._has_ended:
                await self._stop(self._session_id)  # Another task that still reads reads to the end of it.

    @property
    def session_id(self) -> str:
        """The session of the answer. Raises Invalid before the first piece."""
        if self._session_id is None:
            raise Invalid("the session is known when the prompt was sent; take the first piece first")
        return self._session_id

    @property
    def answer(self) -> Answer[T]:
        """The whole answer. Raises Invalid while there is more text to come."""
        if self._answer is None:
            raise Invalid("the answer is known when its stream has ended; iterate over it to its end first")
        return self._answer

    async def aclose(self) -> None:
        """Stop receiving. The session goes on. Raises Invalid while another task waits for a piece."""
        if self._is_read:
            raise Invalid("another task reads this answer; cancel it first, or leave the block, which stops the turn")
        await self._pieces.aclose()

    async def _stream(self) -> AsyncGenerator[str, None]:
        session_id = await self._open_session()
        async with self._subscribe(session_id) as heard:
            sent = await self._send(session_id)
            self._session_id = session_id
            settled = _Settled(heard)
            self._group.start_soon(settled.run, self._settle, sent)
            pieces = AnswerPieces(sent.receipt.message_id)
            try:
                async for one in heard:
                    for piece in pieces.take(one):
                        yield piece
            except Overflow:
                pass  # The consumer is slow. What it missed is read at the end.
            outcome = await settled.wait()
            self._has_ended = True
        answer = await self._read(sent, outcome.reason)
        for piece in pieces.rest(answer.parts):
            yield piece
        self._answer = answer
        if self._check and answer.error is not None:
            raise TurnFailed(answer.error, answer)


class _Settled:
    """Waits for the end of the answer in a task of its own, and ends the subscription then."""

    def __init__(self, heard: Subscription[AnyNotification]) -> None:
        self._heard = heard
        self._done = anyio.Event()
        self._outcome: Outcome | None = None
        self._error: Exception | None = None

    async def run(self, settle: "Callable[[Sent], Awaitable[Outcome]]", sent: "Sent") -> None:
        """Wait for the end. An exception is kept for the consumer: in the task group it would end all sessions."""
        try:
            self._outcome = await settle(sent)
        except Exception as error:
            self._error = error
        finally:
            self._heard.close()
            self._done.set()

    async def wait(self) -> "Outcome":
        """Wait for the outcome of the session. Raises the exception of ``run``."""
        await self._done.wait()
        if self._error is not None:
            raise self._error
        assert self._outcome is not None, "set before the event"
        return self._outcome
