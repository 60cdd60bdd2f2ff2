"""The tools that models may call."""

from turnkeeper.model.message import ModelChoice
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import route


class ToolQuery(Value):
    """The model that calls the tools."""

    provider: str
    model: str


class ToolEntry(Value):
    """A tool, with the JSON schema of its arguments."""

    id: str
    description: str
    parameters: JsonObject


async def ids(call: PlainRequest) -> list[str]:
    """The names of all tools."""
    setup = await call.directories.setup(await call.place())
    return list(setup.toolbox.names)


async def tools(call: HttpRequest[ToolQuery, None]) -> list[ToolEntry]:
    """The tools that a model is given."""
    place = await call.place()
    model = call.turnkeeper.runtime.model(
        ModelChoice(provider_id=call.query.provider, model_id=call.query.model), place
    )
    setup = await call.directories.setup(place)
    return [
        ToolEntry(id=one.name, description=one.description, parameters=one.schema)
        for one in setup.toolbox.visible((), model_id=model.id, agents=setup.agents.values()).definitions()
    ]


ROUTES = (
    route("GET", "/experimental/tool/ids", "tool.ids", ids),
    route("GET", "/experimental/tool", "tool.list", tools),
)
