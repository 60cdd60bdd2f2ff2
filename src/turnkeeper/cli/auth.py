"""Commands that store, list and delete the API keys of providers. None of them prints a key."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.models import local_catalog, local_settings
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, answer_items, interruptible, note, remark, says_yes, typed_line
from turnkeeper.cli.screen import Column, Screen, harmless, table
from turnkeeper.core import flags
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnkeeper.core.key_shapes import PastedKey
    from turnkeeper.providers.catalog import ProviderInfo
    from turnkeeper.workspace.config import LoadedSettings

Provider = Annotated[str, Parameter(metavar="PROVIDER", help="The provider's id, as in `turnkeeper models`.")]
LoginTarget = Annotated[
    str | None,
    Parameter(
        metavar="PROVIDER",
        help="The provider's id, as in `turnkeeper models`, or the URL of a host; without it you can choose.",
    ),
]
KeySource = Annotated[
    str | None, Parameter(metavar="-", help="- reads the key from standard input.", allow_leading_hyphen=True)
]


async def login(
    provider: LoginTarget = None,
    /,
    *,
    key: KeySource = None,
    key_stdin: Annotated[bool, Parameter(help="Read the key from standard input; the same as --key -.")] = False,
    browser: Annotated[bool, Parameter(help="Log in by browser and get a key so; only OpenRouter offers it.")] = False,
    unchecked: Annotated[bool, Parameter(help="Store a key also if it looks like that of another vendor.")] = False,
    yes: Annotated[bool, Parameter(help="With a URL: do not ask before the command of the host is run.")] = False,
    options: Options,
) -> None:
    """Store the API key of a provider in auth.json, which only you can read.

    Without PROVIDER, on a terminal, it is chosen from a list that what you type
    narrows. The key is asked for without echo, or read from standard input if
    that is no terminal. It is never an argument, because other users can read
    those. Quotes and "Bearer" around it are removed, and its shape is compared
    with that of the vendor's keys: a key that looks like another vendor's is
    stored only if you say so. Nothing is sent; `turnkeeper models test` tries it.
    --browser logs in by OAuth at OpenRouter, which gives a key; other vendors keep
    that for programs that are theirs or registered. A key in the environment or
    in the configuration has precedence. With --json the answer is {"provider",
    "file", "doubts"}.

    With the URL of a host, such as https://ai.example.com, you log in for the
    settings that it publishes at /.well-known/opencode: it names a command that
    prints your token, which is shown and run once you agree; or pipe the token
    in. The settings are fetched and hold from then on; `config fetch` fetches them
    again, `config show` shows them, and `auth logout URL` ends it. With --json the
    answer has "keys", too.

    For example:
      turnkeeper auth login
      turnkeeper auth login anthropic
      turnkeeper auth login openrouter --browser
      turnkeeper auth login https://ai.example.com
      pass show openai | turnkeeper auth login openai --key-stdin
    """
    if key not in (None, "-"):
        raise UsageError("others can see a key on the command line; type it when asked, or pipe it in with --key -")
    is_piped = key is not None or key_stdin
    if provider is not None and "://" in provider:
        await _login_at_host(provider, is_token_piped=is_piped, browser=browser, yes=yes, options=options)
    elif browser:
        await _login_by_browser(provider, is_key_given=is_piped, options=options)
    else:
        await _login_with_key(provider, is_piped=is_piped, unchecked=unchecked, options=options)


async def _login_at_host(url: str, *, is_token_piped: bool, browser: bool, yes: bool, options: Options) -> None:
    from turnkeeper.cli import host_login

    if browser:
        raise UsageError("--browser is for OpenRouter; the command of a host opens a browser itself if it needs one")
    await host_login.login(url, is_token_piped=is_token_piped, yes=yes, options=options)


async def _login_with_key(provider: str | None, *, is_piped: bool, unchecked: bool, options: Options) -> None:
    from turnkeeper.cli import provider_picker
    from turnkeeper.workspace import auth

    is_asked = not is_piped and sys.stdin.isatty()
    if provider is None and not is_asked:
        raise UsageError("name the provider: `turnkeeper auth login PROVIDER`; a choice needs a terminal")
    _, catalog = await local_catalog(options.environ)
    known = catalog.provider(provider_picker.pick(catalog) if provider is None else provider)
    if not known.env and not known.configured:
        raise Invalid(f"{known.id!r} needs no key")
    found = _checked(known, _typed(known.name) if is_asked else typed_line(""))
    if found.is_foreign and not unchecked:
        if not is_asked:
            raise Invalid(f"{found.doubts[0]} Nothing was stored; --unchecked stores it nevertheless")
        if not says_yes("Store it nevertheless?"):
            raise Invalid("nothing was stored")
    file = auth.file(options.environ)
    file.write(known.id, auth.ApiKey(key=found.key))
    value = {"provider": known.id, "file": str(file.path), "doubts": found.doubts}
    answer(options, value, lambda screen: f"Stored the key of {known.name} in {screen.path(str(file.path))}")
    if name := next((one for one in known.env if options.environ.get(one)), None):
        remark(options, f"{name} is set in the environment and has precedence.")


async def _login_by_browser(provider: str | None, *, is_key_given: bool, options: Options) -> None:
    import secrets

    from turnkeeper.providers import openrouter_login
    from turnkeeper.workspace import auth

    if provider not in (None, openrouter_login.PROVIDER):
        raise UsageError(f"only OpenRouter offers a login by browser; `turnkeeper auth login {provider}` takes a key")
    if is_key_given:
        raise UsageError("give --browser or a key, not both")
    site = openrouter_login.site(options.environ)
    verifier = secrets.token_urlsafe(32)
    async with openrouter_login.Callback(secrets.token_urlsafe(16)).open() as callback:
        print("Open this address in a browser on this machine, and agree there:", file=sys.stderr)
        print(openrouter_login.address(callback.url, verifier, site), file=sys.stderr, flush=True)
        code = await callback.wait()
    key = await openrouter_login.exchanged(code, verifier, site)
    file = auth.file(options.environ)
    file.write(openrouter_login.PROVIDER, auth.ApiKey(key=key))
    value = {"provider": openrouter_login.PROVIDER, "file": str(file.path), "doubts": ()}
    answer(options, value, lambda screen: f"Stored the key of OpenRouter in {screen.path(str(file.path))}")


def _checked(provider: "ProviderInfo", text: str) -> "PastedKey":
    """The key in what was typed or piped, with remarks about it. None of them shows the key."""
    from turnkeeper.core.key_shapes import pasted

    own_host = provider.options.base_url is not None
    found = pasted(text, provider.id, provider.name, provider.env, own_host=own_host)
    if found.removed:
        note(f"Removed from around the key: {', '.join(found.removed)}.")
    for doubt in found.doubts:
        note(doubt)
    return found


async def list_keys(*, options: Options) -> None:
    """List the providers that have a key, and where it is from.

    A key is read from the environment, else from the configuration, else from
    auth.json. No key is shown. With --json the answer is {"items": [{"provider",
    "from", "where", "kind"}]}; "where" is the variable, or the file and for a
    configuration file the line, and "kind" that of an entry in auth.json.

    For example:
      turnkeeper auth list
    """
    from turnkeeper.providers import choice
    from turnkeeper.workspace import auth

    loaded, catalog = await local_settings(options.environ)
    credentials = auth.credentials(options.environ)
    used = [(one.id, key) for one in choice.available(catalog, credentials) if (key := choice.key(one, credentials))]
    # Entries of unknown or disabled providers are listed too, so that they can be deleted.
    seen = {name for name, _ in used}
    origins = {**{name: key.origin for name, key in used}, **dict.fromkeys(credentials.stored.keys() - seen, auth.NAME)}
    path = str(auth.file(options.environ).path)
    found = [
        {
            "provider": name,
            "from": origin,
            "where": _where(name, origin, loaded, path),
            "kind": _kind(credentials.stored.get(name)),
        }
        for name, origin in origins.items()
    ]
    empty = "No provider has a key. `turnkeeper auth login` stores one."
    answer_items(options, found, lambda screen: _table(screen, found), empty=empty)


def _where(provider_id: str, origin: str, loaded: "LoadedSettings", path: str) -> str:
    """The variable, the file with line, or auth.json by its path."""
    from turnkeeper.workspace import auth

    if origin == auth.NAME:
        given = next((name for name in reversed(flags.AUTH_CONTENT.names) if os.environ.get(name)), None)
        return given or path
    if origin == "configuration":
        setting = ("provider", provider_id, "options", "apiKey")
        setters = loaded.setting_sources(*setting)
        return setters[-1].place(setting) if setters else origin
    return origin.rpartition(" ")[2]


async def logout(provider: Provider, /, *, options: Options) -> None:
    """Delete the key of a provider from auth.json.

    With the URL of a host its token is deleted, and with it the settings that were
    fetched from there.

    For example:
      turnkeeper auth logout anthropic
      turnkeeper auth logout https://ai.example.com
    """
    from turnkeeper.cli import host_login
    from turnkeeper.workspace import auth

    file = auth.file(options.environ)
    names = {provider}
    if "://" in provider:
        address = provider.rstrip("/")
        names = {address, f"{address}/"}  # opencode writes it as it was typed.
        host_login.forget(address, options)
    if not sum(file.remove(name) for name in names):
        raise NotFound(
            f"no key of {provider!r} is stored in {str(file.path)!r}; `turnkeeper auth list` shows all of them"
        )
    value = {"provider": provider, "file": str(file.path)}
    answer(options, value, lambda screen: f"Deleted the key of {harmless(provider)}")


def _typed(name: str) -> str:
    from getpass import getpass

    try:
        with interruptible():
            return getpass(f"Key of {name} (not shown): ", stream=sys.stderr)
    except EOFError as error:
        raise Invalid("no key was typed; nothing was stored") from error


def _kind(credential: object) -> str | None:
    config = getattr(type(credential), "__struct_config__", None)
    return str(config.tag) if config is not None else None


def _shown_origin(screen: Screen, entry: "dict[str, str | None]") -> str:
    origin, where = entry["from"] or "", entry["where"] or ""
    return origin if origin.endswith(where) else f"{origin}: {screen.path(where)}"


def _table(screen: Screen, found: "Sequence[dict[str, str | None]]") -> str:
    return table(
        screen,
        Column("PROVIDER", [harmless(one["provider"] or "") for one in found], ("cyan",)),
        Column("KEY FROM", [harmless(_shown_origin(screen, one)) for one in found]),
        Column("STORED AS", [one["kind"] or "" for one in found], ("dim",)),
    )
