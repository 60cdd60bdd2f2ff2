"""A plugin that uses every hook. ``seen`` has the names of the hooks that were called."""

from collections.abc import Mapping
from typing import Any

seen: list[str] = []


def louder(text: str) -> str:
    """Says something louder."""
    return text.upper()


def key() -> str:
    """The key for the provider that this plugin brings."""
    return "sample-key"


class Sample:
    """The hooks. Names with underscores stand for those with dots."""

    tool = {"louder": louder}
    provider = {
        "sample": {
            "protocol": "openai-chat",
            "options": {"baseURL": "http://127.0.0.1:9/v1"},
            "models": {"small": {"name": "Small"}},
        }
    }

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._ending = options.get("ending", "!")

    def config(self, settings: dict[str, Any]) -> None:
        """After settings were read."""
        seen.append("config")
        settings.setdefault("agent", {})["sampler"] = {"prompt": "You sample.", "mode": "primary"}

    async def event(self, event: Any) -> None:
        """After each event of a session."""
        if "event" not in seen:
            seen.append("event")

    async def dispose(self) -> None:
        """When the plugin leaves."""
        seen.append("dispose")

    def chat_message(self, input: Any, output: Any) -> None:
        """A prompt is about to be recorded."""
        seen.append("chat.message")
        output.parts = [
            part.but(text=part.text + self._ending) if hasattr(part, "text") else part for part in output.parts
        ]

    def chat_params(self, input: Any, output: Any) -> None:
        """Before each request."""
        seen.append("chat.params")
        output.temperature = 0.25

    def chat_headers(self, input: Any, output: Any) -> None:
        """Before each request."""
        seen.append("chat.headers")
        output.headers["x-sample"] = input.purpose

    def experimental_chat_system_transform(self, input: Any, output: Any) -> None:
        """Before each request; the same text each time, so that the provider's cache stays of use."""
        seen.append("experimental.chat.system.transform")
        output.system.append("Sampled.")

    async def experimental_chat_messages_transform(self, input: Any, output: Any) -> None:
        """Before each request: the messages as they are sent."""
        seen.append("experimental.chat.messages.transform")

    def experimental_session_compacting(self, input: Any, output: Any) -> None:
        """Before a Summary is written."""
        seen.append("experimental.session.compacting")
        output.context.append("The user likes samples.")

    def experimental_compaction_autocontinue(self, input: Any, output: Any) -> None:
        """After a compaction that nobody asked for."""
        seen.append("experimental.compaction.autocontinue")
        output.enabled = False

    async def experimental_text_complete(self, input: Any, output: Any) -> None:
        """A text of the model ends."""
        seen.append("experimental.text.complete")
        output.text = output.text.replace("secret", "[...]")

    def experimental_provider_small_model(self, input: Any, output: Any) -> None:
        """A model for titles is chosen."""
        seen.append("experimental.provider.small_model")

    def tool_definition(self, input: Any, output: Any) -> None:
        """For each tool of a request."""
        seen.append("tool.definition")
        output.description += " (sampled)"

    def tool_execute_before(self, input: Any, output: Any) -> None:
        """Before a call."""
        seen.append("tool.execute.before")
        if input.tool == "louder":
            output.args["text"] = "very " + output.args["text"]

    def tool_execute_after(self, input: Any, output: Any) -> None:
        """After a call that succeeded."""
        seen.append("tool.execute.after")
        output.output += self._ending

    def shell_env(self, input: Any, output: Any) -> None:
        """Before a shell command."""
        seen.append("shell.env")
        output.env["SAMPLE"] = "1"

    def command_execute_before(self, input: Any, output: Any) -> None:
        """Before a command becomes a prompt."""
        seen.append("command.execute.before")

    def permission_ask(self, input: Any, output: Any) -> None:
        """Where the user would be asked."""
        seen.append("permission.ask")
        output.status = "allow" if input.request.permission == "asks" else "ask"


def plugin(context: Any, options: Mapping[str, Any]) -> Sample:
    """Make the plugin; what it registers besides its hooks is removed with it."""
    context.register_command("sample", "Take a sample of $1.")
    hooks = Sample(options)
    hooks.auth = {"sample": key}  # type: ignore[attr-defined] # Hooks may be added to an object.
    return hooks
