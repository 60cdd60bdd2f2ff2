"""Live check: sends the requests of ``core.live_checks`` to a provider, and sums up their tokens and cost."""

from collections.abc import AsyncIterator

from turnkeeper.core import live_checks
from turnkeeper.core.live_checks import Check, CheckAnswer, CheckResult
from turnkeeper.core.usage import cost, step_tokens
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import Usage
from turnkeeper.providers.one_shot import ask
from turnkeeper.providers.provider import Provider


class LiveCheck:
    """One run of all checks against one model."""

    def __init__(self, provider: Provider, model: ModelInfo) -> None:
        self._provider, self._model = provider, model
        self.requests = 0
        self.input = self.output = 0
        """Tokens, as the host counted them."""
        self.dollars = 0.0

    async def results(self) -> AsyncIterator[CheckResult]:
        """The verdicts as they arrive. If text fails, the rest is skipped: it would fail too, and cost money."""
        first: tuple[CheckAnswer, ...] = ()
        is_skipped = False
        for check in live_checks.CHECKS:
            if is_skipped:
                yield CheckResult(check=check, verdict="skipped", words="there was no answer to the first request")
                continue
            if words := live_checks.unsupported(check, self._model):
                yield CheckResult(check=check, verdict="not supported", words=words)
                continue
            answers = first if check == "usage" else await self._answers(check)
            first = first or answers
            found = live_checks.result(check, answers, self._model)
            is_skipped = check == "text" and found.verdict != "ok"
            yield found

    async def _answers(self, check: Check) -> tuple[CheckAnswer, ...]:
        """The answers to the requests of a check, up to the first that fails."""
        found: list[CheckAnswer] = []
        for request in live_checks.requests(check, self._model):
            found.append(await self._answer(request))
            if found[-1].failure is not None:
                break
        return tuple(found)

    async def _answer(self, request: ModelRequest) -> CheckAnswer:
        answer = await ask(self._provider, request)
        self._count(answer.usage)
        return CheckAnswer(text=answer.text, calls=answer.calls, usage=answer.usage, failure=answer.failure)

    def _count(self, usage: Usage | None) -> None:
        self.requests += 1
        if usage is not None:
            self.input, self.output = self.input + usage.input, self.output + usage.output
            self.dollars += float(cost(step_tokens(usage), usage, self._model))
