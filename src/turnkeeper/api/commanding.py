"""Commanding: the commands of a directory, and prompts by their names."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from turnkeeper.api.running import Running
from turnkeeper.core.arguments import checked
from turnkeeper.model.message import ModelName, model_choice

if TYPE_CHECKING:
    from turnkeeper.model.command import Command
    from turnkeeper.model.notification import Notification
    from turnkeeper.model.prompt import FileInput, Receipt


@checked
class Commanding(Running):
    """The methods for commands. Imports are inside of them, because programs that only read should start fast."""

    async def commands(self, directory: str | Path | None = None) -> "Sequence[Command]":
        """The commands of a directory, by name: built-in ones, and those of the configuration and of markdown files.

        Those of the kind ``prompt`` are sent by ``command``; the actions, such as ``undo``, have methods of their own.
        """
        from turnkeeper.sessions import command

        return await command.commands(self.runtime, Path(directory or self._directory))

    async def command(
        self,
        session_id: str,
        name: str,
        arguments: str = "",
        *,
        input: str = "",
        files: "Sequence[FileInput]" = (),
        id: str | None = None,
        agent: str | None = None,
        model: ModelName | None = None,
        variant: str | None = None,
        resume: bool = True,
    ) -> "Receipt":
        """Send a command as a prompt, durably, and start running the session unless ``resume`` is False.

        ``input`` is further text, which stands at the end of the prompt as it is. With an ``id``, a command that is
        sent again is expanded and admitted once. Raises NotFound for an unknown command, with the nearest names, and
        Forbidden if its template runs a program that is not allowed. The command's own agent and model come before
        those given here. ``command.executed`` is published when the session rests, or at once without ``resume``.
        """
        from turnkeeper.model.command import CommandCall
        from turnkeeper.sessions import command

        call = CommandCall(
            command=name,
            arguments=arguments,
            input=input,
            parts=tuple(files),
            message_id=id,
            agent=agent,
            model=model_choice(model) if model is not None else None,
            variant=variant,
        )
        if resume:
            await self.runtime.lease_keeper.host.check_prompt(session_id)
        # Read before it is run: in a task of the runtime, a store that is away would end all sessions.
        session = await self.get(session_id)
        receipt = await command.send(self.store, self.runtime, session_id, call)
        executed = command.executed(session, call, receipt.message_id)
        if resume:
            await self.runtime.request(session_id)
            self.runtime.group.start_soon(self._publish_at_rest, executed)
        else:
            self._bus.publish(executed)
        return receipt

    async def _publish_at_rest(self, executed: "Notification") -> None:
        await self.runtime.wait(executed.session_id)
        self._bus.publish(executed)
