"""Sharing: whether sessions may be shared here, and where."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from turnkeeper.core import flags
from turnkeeper.model.config import Config

ShareMode: TypeAlias = Literal["manual", "auto", "disabled"]

LOCAL: Final = "http://127.0.0.1:4096"
"""The default address of `turnkeeper serve`."""
DAY_S: Final = 24 * 3600
EXPIRES_S: Final = 7 * DAY_S
"""Seconds that a link lasts unless the caller chooses."""
EXPIRES_S_MAX: Final = 3650 * DAY_S
"""Seconds that a link lasts at most, unless it has no end."""


class ShareSettings(NamedTuple):
    """Whether sessions may be shared, the address that links begin with, and another host that they are sent to."""

    mode: ShareMode
    url: str | None
    remote: str | None


def share_settings(config: Config, environ: Mapping[str, str]) -> ShareSettings:
    """The share settings of the configuration and the environment. A prohibition wins."""
    mode: ShareMode = config.share or "manual"
    if flags.AUTO_SHARE.is_on(environ) and mode == "manual":
        mode = "auto"
    if flags.DISABLE_SHARE.is_on(environ):
        mode = "disabled"
    return ShareSettings(mode, config.share_url, config.enterprise.url)
