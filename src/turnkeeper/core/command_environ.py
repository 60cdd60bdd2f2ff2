"""The environment of a model's commands: the user's, without the keys that this program uses itself."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

PASSWORDS: Final = frozenset({"TURNKEEPER_SERVER_PASSWORD", "OPENCODE_SERVER_PASSWORD"})
SETTINGS: Final = frozenset({"TURNKEEPER_CONFIG_CONTENT", "OPENCODE_CONFIG_CONTENT"})
"""Variables with whole settings, which may hold keys."""
_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL")


def command_environ(
    environ: Mapping[str, str], allowed: Collection[str], key_variables: Callable[[], Collection[str]]
) -> dict[str, str]:
    """The variables a command may see. ``allowed`` are secrets that the configuration lets through by name.

    ``key_variables`` are the variables of providers. A variable is withheld only if its name looks like a secret: a
    provider's region is none.
    """
    suspects = {name for name in environ if _SECRET.search(name)} - set(allowed)
    withheld = (suspects & PASSWORDS) | (suspects & set(key_variables()) if suspects else set())
    withheld |= SETTINGS - set(allowed)
    return {name: value for name, value in environ.items() if name not in withheld}
