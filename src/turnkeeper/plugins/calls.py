"""Plugin hooks around a tool call, the environment of a command, and a permission request to the user."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from turnkeeper.model.permission import PermissionRequest
from turnkeeper.model.value import JsonObject
from turnkeeper.plugins import hooks as h
from turnkeeper.plugins import payloads as p
from turnkeeper.plugins.plugin_set import Changed, PluginSet
from turnkeeper.tools.tool import Attachment, ToolOutput


class PluggedCall(NamedTuple):
    """One tool call, with the plugins that may change its arguments, environment and output."""

    plugins: PluginSet
    tool: str
    session_id: str
    call_id: str

    async def arguments(self, given: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
        """The arguments that the tool is run with, and the plugins that changed them."""
        if not self.plugins.has(h.TOOL_BEFORE.name):
            return given, ()
        asked = p.ToolBeforeInput(tool=self.tool, session_id=self.session_id, call_id=self.call_id)
        output = p.ToolBeforeOutput(args=dict(given))
        changed, by = await self.plugins.trigger(h.TOOL_BEFORE, asked, output, session_id=self.session_id)
        return changed.args, by

    async def environ(self, given: Mapping[str, str], cwd: Path) -> Mapping[str, str]:
        """The environment of the call's command."""
        return await environ(self.plugins, given, cwd, session_id=self.session_id, call_id=self.call_id)

    async def result(self, args: JsonObject, output: ToolOutput) -> ToolOutput:
        """The output of the tool after all plugins; ``args`` are the arguments it was run with."""
        if not self.plugins.has(h.TOOL_AFTER.name):
            return output
        asked = p.ToolAfterInput(tool=self.tool, session_id=self.session_id, call_id=self.call_id, args=args)
        files = [p.AttachedFile(mime=one.mime, url=one.url, filename=one.filename) for one in output.attachments]
        given = p.ToolAfterOutput(
            title=output.title, output=output.output, metadata=dict(output.metadata), attachments=files
        )
        changed, by = await self.plugins.trigger(h.TOOL_AFTER, asked, given, session_id=self.session_id)
        if not by:
            return output
        kept = [Attachment(mime=one.mime, url=one.url, filename=one.filename) for one in changed.attachments]
        return output.but(
            title=changed.title, output=changed.output, metadata=changed.metadata, attachments=tuple(kept)
        )


async def environ(
    plugins: PluginSet, given: Mapping[str, str], cwd: Path, *, session_id: str, call_id: str | None = None
) -> Mapping[str, str]:
    """The environment of a shell command, with what plugins add."""
    if not plugins.has(h.SHELL_ENV.name):
        return given
    asked = p.ShellEnvInput(cwd=str(cwd), session_id=session_id, call_id=call_id)
    added = (await plugins.trigger(h.SHELL_ENV, asked, p.ShellEnvOutput(), session_id=session_id)).output.env
    # A variable that the system does not accept would make every command fail.
    usable = {name: value for name, value in added.items() if name and "=" not in name and "\0" not in name + value}
    return {**given, **usable}


async def permission(plugins: PluginSet, request: PermissionRequest) -> Changed[p.PermissionAskOutput]:
    """The answer of plugins to a permission request in place of the user, if there is one."""
    if not plugins.has(h.PERMISSION_ASK.name):
        return Changed(p.PermissionAskOutput())
    asked = p.PermissionAskInput(request=request)
    return await plugins.trigger(h.PERMISSION_ASK, asked, p.PermissionAskOutput(), session_id=request.session_id)
