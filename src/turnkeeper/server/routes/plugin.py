"""The plugins of a directory, and what went wrong in each last."""

from turnkeeper.model.plugin import PluginStatus
from turnkeeper.server.catalogue import Catalogue
from turnkeeper.server.request import PlainRequest
from turnkeeper.server.route import route


async def plugins(call: PlainRequest) -> list[PluginStatus]:
    """The plugins of a directory in the order in which they are called, and what went wrong in each last."""
    place = await call.place()
    found = await call.directories.plugin_statuses(place)
    mask = call.service.part(Catalogue).mask(place)  # A plugin is given its options, and may quote them.
    return [one.but(error=one.error and mask.within(one.error)) for one in found]


ROUTES = (route("GET", "/plugin", "turnkeeper.plugins", plugins),)
