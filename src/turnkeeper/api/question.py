"""AskedQuestion: the question of a caller: a prompt, its model and agent, and the type of the output."""

from typing import TYPE_CHECKING, Any

from turnkeeper.core.admission import check_content
from turnkeeper.core.output_type import OutputType
from turnkeeper.core.prompt_answer import answer_failure, answer_of, structured_of, text_of
from turnkeeper.model.answer import Answer
from turnkeeper.model.failure import Failure, StructuredOutputData, StructuredOutputFailure
from turnkeeper.model.message import JsonSchemaFormat, ModelName, model_choice
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.store.store import Store

if TYPE_CHECKING:
    from turnkeeper.sessions.ask import Sent


class AskedQuestion:
    """One question. The output type is ``Any`` here: the signatures of ``ask`` and ``stream`` carry it."""

    def __init__(
        self,
        prompt: str | Prompt,
        *,
        id: str | None,
        agent: str | None,
        model: ModelName | None,
        system: str | None,
        output_type: type[Any] | None,
    ) -> None:
        given = Prompt(parts=(TextInput(text=prompt),)) if isinstance(prompt, str) else prompt
        self._output = OutputType(output_type) if output_type is not None else None
        self.key = id if id is not None else given.message_id
        if self.key is not None:
            from turnkeeper.sessions.ask import check_key

            check_key(self.key)
        changes: dict[str, object] = {"no_reply": False}
        if agent is not None:
            changes["agent"] = agent
        if model is not None:
            changes["model"] = model_choice(model)
        if system is not None:
            changes["system"] = system
        if self._output is not None:
            changes["format"] = JsonSchemaFormat(schema=self._output.schema)
        self._prompt = given.but(**changes)
        check_content(self._prompt)  # Checked here like the id, before a session is created for the prompt.

    def prompt(self, session_id: str) -> Prompt:
        """The prompt as it is sent in a session."""
        from turnkeeper.sessions.ask import derived_prompt_id

        message_id = derived_prompt_id(session_id, self.key) if self.key is not None else None
        return self._prompt.but(message_id=message_id)

    async def answer(self, store: Store, sent: "Sent", reason: str) -> Answer[Any]:
        """The recorded answer. ``reason`` is the reason why the session rests."""
        from turnkeeper.sessions.ask import answer_turns

        turns = await answer_turns(store, sent.receipt)
        output, error = self._converted(structured_of(turns), text_of(turns), answer_failure(turns, reason))
        return answer_of(sent.receipt.session_id, sent.receipt.message_id, turns, output, error)

    def _converted(self, structured: object, text: str, error: Failure | None) -> tuple[Any, Failure | None]:
        """The output in the requested type, or the failure of the conversion."""
        if self._output is None:
            return text, error
        if error is not None:
            return None, error
        try:
            return self._output.convert(structured), None
        except ValueError as problem:  # For example, ``__post_init__`` refuses what the schema allows.
            message = f"the output does not fit its type: {problem}"
            return None, StructuredOutputFailure(data=StructuredOutputData(message=message, retries=0))
