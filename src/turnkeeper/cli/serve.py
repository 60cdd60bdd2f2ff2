"""The command that serves sessions over HTTP, to official opencode clients and others."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from turnkeeper.cli import words
from turnkeeper.cli.options import EVERYWHERE, PASSWORD_VARIABLES, USERNAME_VARIABLES, Options, from_environment

if TYPE_CHECKING:
    from turnkeeper.run.runtime import Settings
    from turnkeeper.server.asks import Asks


async def serve(
    *,
    port: Annotated[int, words.Parameter(metavar="PORT", help="Where to listen; 0 takes a free one.")] = 4096,
    hostname: Annotated[str, words.Parameter(metavar="HOST", help="The name or address to listen on.")] = "127.0.0.1",
    cors: Annotated[
        tuple[str, ...],
        words.Parameter(metavar="ORIGIN", help="A further origin whose pages may call; may be repeated."),
    ] = (),
    insecure: Annotated[bool, words.Parameter(help="Let others reach this server without a password.")] = False,
    log_format: Annotated[
        Literal["text", "json"], words.Parameter(metavar="FORMAT", help="text, or json: one object a line.")
    ] = "text",
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        words.Parameter(metavar="LEVEL", help="What is logged on standard error; info has every request."),
    ] = "warning",
    options: Options = EVERYWHERE,
) -> None:
    """Serve sessions over HTTP until told to stop.

    Speaks the API of opencode, so its terminal UI and its SDKs work with it unchanged. The working directory is the
    project of requests that name none. A password comes from TURNKEEPER_SERVER_PASSWORD or OPENCODE_SERVER_PASSWORD
    (the user is `opencode`, or what TURNKEEPER_SERVER_USERNAME says); without one, only this machine may be served.
    GET /doc describes the API, GET /metrics what was done. Prints where it listens; with --json as {"url"}.

    Examples:
      turnkeeper serve
      turnkeeper serve --port 0 --log-format json --log-level info
      opencode attach http://127.0.0.1:4096
    """
    import anyio

    from turnkeeper.server import logs, serving
    from turnkeeper.server.asks import Asks
    from turnkeeper.server.service import Options as Start
    from turnkeeper.server.service import Service

    options = options.here
    logs.begin(log_format, log_level)
    start = Start(
        hostname=hostname,
        username=from_environment(USERNAME_VARIABLES) or "opencode",
        password=from_environment(PASSWORD_VARIABLES),
        cors=cors,
        environ=options.environ,
    )
    serving.check(start, insecure=insecure)
    bound = serving.listen(hostname, port)
    asks = Asks()
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with options.run(Path.cwd(), partial(_settings, options, asks)) as turnkeeper:
            # Before anything is answered: what a dead process left open would be taken for what is going on.
            left = await turnkeeper.take_over()
            service = Service(turnkeeper, Path.cwd(), start, asks)
            async with (
                serving.serving(service, bound) as app,
                anyio.create_task_group() as group,
            ):
                _tell(serving.address(bound), as_json=options.json)
                group.start_soon(serving.settle_in, app, service, left)
                async for _ in signals:
                    group.cancel_scope.cancel()


def _settings(options: Options, asks: Asks) -> Settings:
    # Made with the first run: what runs sessions is most of what there is to load.
    from turnkeeper.run.runtime import Settings

    return Settings(ask=asks.ask, environ=options.environ)


def _tell(url: str, *, as_json: bool) -> None:
    import json

    print(json.dumps({"url": url}) if as_json else f"Turnkeeper listens on {url}", flush=True)
