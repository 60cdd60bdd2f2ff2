"""The environment of a model's commands: the user's, without keys and passwords."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from turnkeeper.core import flags

UNTOLD: Final = frozenset({*flags.CONFIG_CONTENT.names, *flags.AUTH_CONTENT.names, "MYSQL_PWD"})
"""Variables with secrets whose names do not show it: whole settings and credentials, and a password."""
_SECRET: Final = re.compile(
    r"(?:API|APP|AUTH|ACCESS|ACCOUNT|PRIVATE|SECRET|SSH|SIGNING|ENCRYPTION|MASTER)?KEYS?"
    r"|.*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?"
    r"|(?:DB|SSH)?PASS"
)
"""Matches a word of a name that marks a secret: in ``GITHUB_TOKEN`` and ``PGPASSWORD``, and not in ``KEYBOARD``."""

_ADDRESS_WITH_PASSWORD: Final = re.compile(r"://[^:@/?#]*:.*@|[?&](?:ssl)?password=", re.I)

_SUSPECT: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL")


def command_environ(
    environ: Mapping[str, str], allowed: Collection[str], key_variables: Callable[[], Collection[str]]
) -> dict[str, str]:
    """The variables a command may see. ``allowed`` are secrets that the configuration lets through by name.

    ``key_variables`` are the variables of providers. One of them is withheld if its name holds a word for a secret in
    any way; a provider's region is not withheld.
    """
    suspects = {name for name in environ if _SUSPECT.search(name.upper())}
    withheld = {name for name in suspects if is_secret(name)} | UNTOLD
    withheld |= {name for name in flags.STORE.names if _ADDRESS_WITH_PASSWORD.search(environ.get(name, ""))}
    if suspects - withheld:
        withheld |= suspects & set(key_variables())
    return {name: value for name, value in environ.items() if name in allowed or name not in withheld}


def is_secret(name: str) -> bool:
    """Whether the value of a variable is a key or password, by the words of its name."""
    return any(_SECRET.fullmatch(word) for word in re.split(r"[^A-Z0-9]+", name.upper()))
