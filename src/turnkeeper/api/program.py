"""Arguments of ``open`` from a program: settings, tools, components, agents and a provider."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from turnkeeper.api.agent import Agent, configuration_of
from turnkeeper.core import settings as merging
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject

if TYPE_CHECKING:
    from turnkeeper.context.component import ContextComponent
    from turnkeeper.providers.provider import Provider
    from turnkeeper.run.runtime import Settings
    from turnkeeper.tools.custom import Function
    from turnkeeper.tools.tool import AnyTool


def settings_of(
    settings: "Settings | None",
    *,
    config: JsonObject | None = None,
    tools: "Sequence[AnyTool | Function]" = (),
    components: "Sequence[ContextComponent]" = (),
    agents: Sequence[Agent] = (),
    provider: "Provider | None" = None,
) -> "Settings | None":
    """The settings with the program's tools, components, agents and provider. Raises Invalid if one is wrong."""
    if not (config or tools or components or agents or provider):
        return settings
    import msgspec

    from turnkeeper.context.components import Components
    from turnkeeper.run.runtime import Settings
    from turnkeeper.workspace.config import ProgramSettings

    before = settings or Settings()
    changes: dict[str, object] = {}
    if config or agents:
        own = [configuration_of(agents), config or {}]
        changes["config"] = merging.merged([before.config, *own])
        ProgramSettings(merging.merged(own))
    if tools:
        changes["tools"] = _with_tools(before.tools, [_tool(one) for one in tools])
    if components:
        changes["components"] = (*before.components, *components)
        checked = Components()
        for component in components:
            checked.register(component)
    if provider is not None:
        changes["transport"] = lambda endpoint: provider
    return msgspec.structs.replace(before, **changes)


def _tool(given: "AnyTool | Function") -> "AnyTool":
    from turnkeeper.tools.custom import tool
    from turnkeeper.tools.tool import Tool

    if isinstance(given, Tool):
        return given
    if not callable(given):
        raise Invalid(f"a tool is a function, or what @turnkeeper.tool makes of one, not {given!r:.80}")
    return tool(given)


def _with_tools(load: "Callable[[], Sequence[AnyTool]]", own: "Sequence[AnyTool]") -> "Callable[[], Sequence[AnyTool]]":
    """The tools of the program and the others; a tool of the program replaces another of the same name."""
    names = {one.name for one in own}
    if len(names) < len(own):
        raise Invalid(f"two tools have one name; the names are {', '.join(sorted(one.name for one in own))}")
    return lambda: [*(one for one in load() if one.name not in names), *own]
