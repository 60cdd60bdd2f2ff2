"""Dynamic completions for the shell: sessions, models and agents."""

from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from turnkeeper.cli.options import Options

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

    from turnkeeper.cli.choices import Choices

SESSIONS_MAX: Final = 500
"""How many sessions are offered: the newest ones."""
PATIENCE_S: Final = 2.0
"""How long a shell waits. After that nothing is completed, as with a server that does not answer."""

Candidates: TypeAlias = dict[str, str]
"""Words with what each is about, which some shells show."""


def sessions(context: "CompletionContext") -> Candidates:
    """Sessions by their slugs; by their ids where an id was begun, or where several have the same slug."""
    return _waited(_sessions(_options(context), is_id=context.incomplete.startswith("ses_")))


def models(context: "CompletionContext") -> Candidates:
    """The models that can be used in the current directory."""
    return _waited(_models(_options(context)))


def agents(context: "CompletionContext") -> Candidates:
    """The agents that can answer in the current directory."""
    return _waited(_agents(_options(context)))


def _options(context: "CompletionContext") -> Options:
    """The shared options that stand on the command line."""
    given = {name: found.raw for name in ("store", "data", "server") if (found := context.get(f"--{name}")) is not None}
    data = given.get("data")
    return Options(store=given.get("store"), data=Path(data) if data else None, server=given.get("server"))


def _waited(work: Coroutine[object, object, Candidates]) -> Candidates:
    import asyncio  # Not above: commands that complete nothing import this module.

    async def wait() -> Candidates:
        async with asyncio.timeout(PATIENCE_S):
            return await work

    found = asyncio.run(wait())
    return {word: about for word, about in found.items() if word.isprintable()}


async def _sessions(options: Options, *, is_id: bool) -> Candidates:
    from turnkeeper.cli.screen import one_line

    if options.address is None and options.is_missing:
        return {}
    async with options.sessions(read_only=True) as tk:
        page = await tk.list(roots=False, archived=True, limit=SESSIONS_MAX)
    count = Counter(one.slug for one in page.items)
    return {
        one.id if is_id or count[one.slug] > 1 or not one.slug else one.slug: one_line(one.title) for one in page.items
    }


async def _models(options: Options) -> Candidates:
    if options.address is not None:
        return dict((await _served(options)).models)
    from turnkeeper.cli.plugged import catalog_of, settings_here
    from turnkeeper.providers import choice
    from turnkeeper.workspace import auth

    # Without plugins: a key pressed in a shell runs no program of others.
    _, loaded = await settings_here(options.environ)
    catalog = catalog_of(loaded.config, options.environ)
    usable = choice.available(catalog, auth.credentials(options.environ))
    return {f"{one.id}/{id}": model.name for one in usable for id, model in one.models.items()}


async def _agents(options: Options) -> Candidates:
    if options.address is not None:
        return dict((await _served(options)).agents)
    from turnkeeper.cli.plugged import settings_here
    from turnkeeper.cli.screen import one_line
    from turnkeeper.run.configured import configured_agents

    _, loaded = await settings_here(options.environ)
    found = configured_agents(loaded.config, options.environ)
    shown = [one for one in found.values() if not one.hidden and one.mode != "subagent"]
    return {one.name: one_line(one.description or "") for one in shown}


async def _served(options: Options) -> "Choices":
    from turnkeeper.cli import choices

    async with options.client() as client:
        return await choices.load(client, Path.cwd() if options.is_near else None)
