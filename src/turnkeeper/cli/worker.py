"""The command that runs sessions which other processes ask for."""

import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from turnkeeper.cli.host_options import Labels, LogFormat, LogLevel, OnlyLabels, begin_log
from turnkeeper.cli.options import Options
from turnkeeper.cli.trust import Trust

if TYPE_CHECKING:
    from anyio import CancelScope

    from turnkeeper.run.runtime import Settings
    from turnkeeper.run.worker import Worker


async def worker(
    *,
    concurrency: Annotated[
        int, Parameter(metavar="N", help="How many sessions to run at a time.", validator=Number(gte=1, lte=1000))
    ] = 8,
    label: Labels = (),
    only_labels: OnlyLabels = False,
    lease: Annotated[
        float,
        Parameter(
            metavar="S",
            help="Seconds of silence after which other workers take its sessions.",
            validator=Number(gte=1, lte=3600),
        ),
    ] = 10.0,
    patience: Annotated[
        float, Parameter(metavar="S", help="Seconds for running sessions to end at SIGTERM.", validator=Number(gte=0))
    ] = 30.0,
    log_format: LogFormat = "text",
    log_level: LogLevel = None,
    trust: Trust = False,
    options: Options,
) -> None:
    """Run the sessions that servers with --no-run ask for.

    Several workers may share a store; each session is run by one of them. If one
    dies, the others take its sessions over: at once on the same machine, else
    after the lease of the dead one. At SIGTERM or SIGINT a worker takes no more
    sessions, waits for those it runs, and then stops them; a second signal stops
    them at once. Prints a line when it is ready; with --json {"pid",
    "concurrency", "labels"}.

    A label says what this machine has, such as a directory or a GPU. A session
    with a label is run by workers that have it, and by no others; `session create
    --label` and `session move --label` set it.

    For example:
      turnkeeper worker
      turnkeeper worker --label gpu --only-labels
      turnkeeper worker --concurrency 32 --patience 120
    """
    from turnkeeper.core.labels import declared
    from turnkeeper.core.lease import terms_of
    from turnkeeper.run.runtime import Settings

    options = options.without_server
    begin_log(log_format, log_level, options)
    settings = Settings(
        ask=None,
        question=None,
        environ=options.trusting(trust),
        labels=declared(label, only=only_labels),
        needs_directory=True,
        lease=terms_of(lease),
    )
    await _work_until_signal(options, settings, concurrency, patience)


async def _work_until_signal(options: Options, settings: "Settings", concurrency: int, patience: float) -> None:
    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with options.run(Path.cwd(), settings) as turnkeeper:
            left = await turnkeeper.take_over()
            work = turnkeeper.runtime.worker(concurrency)
            async with anyio.create_task_group() as group:
                group.start_soon(turnkeeper.watch_leases)
                group.start_soon(turnkeeper.run_answered)
                group.start_soon(turnkeeper.resume_taken_over, left)
                group.start_soon(_leave_at_signal, signals, work, patience, group.cancel_scope)
                labels = settings.labels.labels
                ready = {"pid": os.getpid(), "concurrency": concurrency, "labels": labels}
                said = f"Turnkeeper worker {os.getpid()} runs up to {concurrency} sessions at a time"
                said += f", with the labels {', '.join(labels)}" if labels else ""
                print(json.dumps(ready) if options.json else said, flush=True)
                await work.work()
                group.cancel_scope.cancel()


async def _leave_at_signal(
    signals: AsyncIterator[signal.Signals], work: "Worker", patience: float, scope: "CancelScope"
) -> None:
    """Let the worker finish at the first signal, and stop it at the second or after ``patience`` seconds."""
    import anyio

    async for _ in signals:
        break
    work.leave()
    with anyio.move_on_after(patience):
        async for _ in signals:
            break
    scope.cancel()
