"""The tools that models may call, as clients list them."""

from turnkeeper.model.message import ModelChoice
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.call import HttpRequest, PlainRequest
from turnkeeper.server.route import Route


class ToolQuery(Value):
    """The model that would call them."""

    provider: str
    model: str


class ToolWords(Value):
    """A tool, with the JSON schema of its arguments."""

    id: str
    description: str
    parameters: JsonObject


async def ids(call: PlainRequest) -> list[str]:
    """The names of all tools."""
    setup = await call.turnkeeper.runtime.directories.setup(await call.place())
    return list(setup.toolbox.names)


async def tools(call: HttpRequest[ToolQuery, None]) -> list[ToolWords]:
    """The tools that a model is given."""
    place = await call.place()
    model = call.turnkeeper.runtime.model(
        ModelChoice(provider_id=call.query.provider, model_id=call.query.model), place
    )
    setup = await call.turnkeeper.runtime.directories.setup(place)
    return [
        ToolWords(id=one.name, description=one.description, parameters=one.schema)
        for one in setup.toolbox.visible((), model_id=model.id).definitions()
    ]


ROUTES = (
    Route(
        method="GET",
        path="/experimental/tool/ids",
        operation="tool.ids",
        tier=2,
        summary="The names of all tools.",
        handler=ids,
        answer=list[str],
    ),
    Route(
        method="GET",
        path="/experimental/tool",
        operation="tool.list",
        tier=2,
        summary="The tools that a model is given, with the schemas of their arguments.",
        handler=tools,
        query=ToolQuery,
        answer=list[ToolWords],
        errors=(Invalid,),
    ),
)
