"""Commands that store, list and delete the API keys of providers. None of them prints a key."""

import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.models import local_catalog
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, note
from turnkeeper.cli.screen import Column, Screen, harmless, table
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

Provider = Annotated[str, Parameter(metavar="PROVIDER", help="The provider's id, as in `turnkeeper models`.")]


async def login(
    provider: Provider,
    /,
    *,
    key: Annotated[
        str | None, Parameter(metavar="-", help="- reads the key from standard input.", allow_leading_hyphen=True)
    ] = None,
    options: Options,
) -> None:
    """Store the API key of a provider in auth.json, which only you can read.

    The key is asked for without echo, or read from standard input if that is no
    terminal. It is never an argument, because other users can read those. A key
    in the environment or in the configuration has precedence. With --json the
    answer is {"provider", "file"}.

    For example:
      turnkeeper auth login anthropic
      pass show openai | turnkeeper auth login openai --key -
    """
    from turnkeeper.workspace import auth

    if key not in (None, "-"):
        raise UsageError("others can see a key on the command line; type it when asked, or pipe it in with --key -")
    _, catalog = await local_catalog(options.environ)
    known = catalog.provider(provider)
    if not known.env and not known.configured:
        raise Invalid(f"{provider!r} needs no key")
    secret = _typed(known.name) if key is None and sys.stdin.isatty() else sys.stdin.readline()
    secret = secret.strip()
    if not secret or any(character.isspace() or not character.isprintable() for character in secret):
        raise Invalid("a key is one word without spaces; nothing was stored")
    file = auth.file(options.environ)
    file.write(provider, auth.ApiKey(key=secret))
    value = {"provider": provider, "file": str(file.path)}
    answer(options, value, lambda screen: f"Stored the key of {known.name} in {screen.path(str(file.path))}")
    if not options.json and (name := next((one for one in known.env if options.environ.get(one)), None)):
        note(f"{name} is set in the environment and has precedence.")


async def list_keys(*, options: Options) -> None:
    """List the providers that have a key, and where it is from.

    A key is read from the environment, else from the configuration, else from
    auth.json. With --json the answer is [{"provider", "from", "kind"}]; "kind" is
    that of an entry in auth.json.

    For example:
      turnkeeper auth list
    """
    from turnkeeper.providers import choice
    from turnkeeper.workspace import auth

    _, catalog = await local_catalog(options.environ)
    credentials = auth.credentials(options.environ)
    used = [(one.id, key) for one in choice.available(catalog, credentials) if (key := choice.key(one, credentials))]
    found = [{"provider": name, "from": key.origin, "kind": _kind(credentials.stored.get(name))} for name, key in used]
    # Entries of unknown or disabled providers are listed too, so that they can be deleted.
    seen = {name for name, _ in used}
    found += [
        {"provider": name, "from": auth.NAME, "kind": _kind(one)}
        for name, one in credentials.stored.items()
        if name not in seen
    ]
    empty = "No provider has a key. `turnkeeper auth login PROVIDER` stores one."
    answer(options, found, lambda screen: _table(screen, found), empty=empty)


async def logout(provider: Provider, /, *, options: Options) -> None:
    """Delete the key of a provider from auth.json.

    For example:
      turnkeeper auth logout anthropic
    """
    from turnkeeper.workspace import auth

    file = auth.file(options.environ)
    if not file.remove(provider):
        raise NotFound(
            f"no key of {provider!r} is stored in {str(file.path)!r}; `turnkeeper auth list` shows all of them"
        )
    value = {"provider": provider, "file": str(file.path)}
    answer(options, value, lambda screen: f"Deleted the key of {harmless(provider)}")


def _typed(name: str) -> str:
    from getpass import getpass

    try:
        return getpass(f"Key of {name} (not shown): ", stream=sys.stderr)
    except EOFError as error:
        raise Invalid("no key was typed; nothing was stored") from error


def _kind(credential: object) -> str | None:
    config = getattr(type(credential), "__struct_config__", None)
    return str(config.tag) if config is not None else None


def _table(screen: Screen, found: "Sequence[dict[str, str | None]]") -> str:
    return table(
        screen,
        Column("PROVIDER", [harmless(one["provider"] or "") for one in found], ("cyan",)),
        Column("KEY FROM", [harmless(one["from"] or "") for one in found]),
        Column("STORED AS", [one["kind"] or "" for one in found], ("dim",)),
    )
