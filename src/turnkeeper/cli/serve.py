"""The command that runs the HTTP server."""

import json
import os
import signal
from functools import partial
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from turnkeeper.cli.host_options import Labels, LogFormat, LogLevel, OnlyLabels, begin_log
from turnkeeper.cli.options import Options
from turnkeeper.cli.trust import Trust
from turnkeeper.core import flags

if TYPE_CHECKING:
    from turnkeeper.run.runtime import Settings
    from turnkeeper.server.service import ServerOptions


async def serve(
    *,
    port: Annotated[
        int, Parameter(metavar="PORT", help="The port; 0 takes a free one.", validator=Number(gte=0, lte=65_535))
    ] = 4096,
    hostname: Annotated[str, Parameter(metavar="HOST", help="The host name or address to listen on.")] = "127.0.0.1",
    cors: Annotated[
        tuple[str, ...],
        Parameter(metavar="ORIGIN", help="Also allow requests of pages of this origin. Can be repeated."),
    ] = (),
    insecure: Annotated[bool, Parameter(help="Serve other machines without a password.")] = False,
    no_run: Annotated[
        bool, Parameter(negative=(), help="Run no sessions here: processes of `turnkeeper worker` run them.")
    ] = False,
    label: Labels = (),
    only_labels: OnlyLabels = False,
    log_format: LogFormat = "text",
    log_level: LogLevel = None,
    trust: Trust = False,
    options: Options,
) -> None:
    """Serve sessions over HTTP with the API of opencode.

    The terminal UI and the SDKs of opencode work with it unchanged. The working
    directory is the project of requests that name none.

    Set TURNKEEPER_SERVER_PASSWORD or OPENCODE_SERVER_PASSWORD for a password; the
    user is `opencode`, or TURNKEEPER_SERVER_USERNAME. Without a password only
    this machine is served, and commands that a model runs here are refused; a
    password also stops commands of other servers on this machine. GET /doc
    describes the API, and GET /metrics has counters. Prints the URL; with --json
    as {"url"}.

    With --no-run the server takes prompts, streams and answers, and workers on
    the same store run the sessions. Workers also run the sessions whose label the
    server does not have; `turnkeeper worker --help` explains labels.

    For example:
      turnkeeper serve
      turnkeeper serve --port 0 --log-format json --log-level info
      turnkeeper serve --no-run & turnkeeper worker
      opencode attach http://127.0.0.1:4096
    """
    from turnkeeper.core.labels import declared
    from turnkeeper.server import serving
    from turnkeeper.server.service import ServerOptions

    options = options.without_server
    begin_log(log_format, log_level, options)
    start = ServerOptions(
        hostname=hostname,
        username=flags.SERVER_USERNAME.value(os.environ) or "opencode",
        password=flags.SERVER_PASSWORD.value(os.environ),
        cors=cors,
        environ=options.trusting(trust),
        runs=not no_run,
        labels=declared(label, only=only_labels),
    )
    serving.check(start, insecure=insecure)
    await _serve_until_signal(options, start, serving.listen(hostname, port))


async def _serve_until_signal(options: Options, start: "ServerOptions", bound: socket) -> None:
    """Print the URL and answer requests until SIGTERM or SIGINT."""
    import anyio

    from turnkeeper.server import serving
    from turnkeeper.server.service import Service

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with options.run(Path.cwd(), partial(_settings, start)) as turnkeeper:
            # Before the first request: a turn that a dead process left open would look like a running one.
            left = await turnkeeper.take_over() if start.runs else ()
            service = Service(turnkeeper, Path.cwd(), start)
            async with serving.serving(service, bound) as app, anyio.create_task_group() as group:
                url = serving.address(bound)
                print(json.dumps({"url": url}) if options.json else f"Turnkeeper listens on {url}", flush=True)
                group.start_soon(serving.settle_in, app, service, bound, left)
                async for _ in signals:
                    group.cancel_scope.cancel()


def _settings(start: "ServerOptions") -> "Settings":
    # Called for the first run, because importing the runtime takes most of the start-up time.
    from turnkeeper.run.runtime import Settings

    # Clients answer, now or after a restart.
    return Settings(
        ask=None, question=None, environ=start.environ, runs=start.runs, labels=start.labels, delegates=True
    )
