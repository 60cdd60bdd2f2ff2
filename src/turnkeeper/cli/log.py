"""The command that prints the log of a session, event by event, and follows it."""

import sys
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import note, write
from turnkeeper.cli.screen import Screen, shortened, show
from turnkeeper.cli.stopping import until_stopped
from turnkeeper.model.refusal import NotFound

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.core.entry import Recorded

PAGE: Final = 500
KIND_WIDTH: Final = 20
WIDE: Final = 100
LINE_WIDTH: Final = 160
"""The width of a line where the output is no terminal."""


class _Stored(NamedTuple):
    recorded: "Recorded"
    entry: bytes


async def log(
    id: names.SessionName,
    /,
    *,
    first: Annotated[
        int, Parameter(name="--from", metavar="SEQ", converter=names.whole, help="Begin with this event.")
    ] = 1,
    follow: Annotated[bool, Parameter(name=("--follow", "-f"), help="Go on with new events until Ctrl-C.")] = False,
    options: Options,
) -> None:
    """Print the events of a session, oldest first: number, time, type and content.

    The log is all that is stored of a session; everything else follows from it.
    --follow also prints the events of other processes as they come. It ends with
    Ctrl-C, or when the session is deleted. With --json each line is an event as
    it is stored: {"seq", "prev", "time", "type", "data"}.

    For example:
      turnkeeper session log calm-otter
      turnkeeper session log calm-otter --from 40 --follow
      turnkeeper session log calm-otter --json | jq -r .type
    """
    options.require_store("session log")
    screen = Screen.of(sys.stdout)
    async with options.read() as tk:
        session_id = await names.session(tk, id)
        entries = _followed(tk, session_id, first) if follow else _written(tk, session_id, first)
        with until_stopped():
            try:
                async for one in entries:
                    if options.json:
                        write(one.entry + b"\n")
                    else:
                        show(_line(screen, one.recorded))
                        sys.stdout.flush()
            except NotFound:
                if not follow:
                    raise
                note(f"{session_id} was deleted.")


async def _written(tk: "Turnkeeper", session_id: str, first: int) -> AsyncIterator[_Stored]:
    """The events from ``first`` on that there are. Raises Damaged at one that cannot be read."""
    from turnkeeper.core import entry

    after = max(first, 1) - 1
    while found := await tk.store.engine.read(session_id, after=after, limit=PAGE):
        for one in found:
            after += 1
            yield _Stored(entry.read(one, after)[0], one)


async def _followed(tk: "Turnkeeper", session_id: str, first: int) -> AsyncIterator[_Stored]:
    """The stored events, then each new one. Raises NotFound once the session is deleted."""
    async for recorded in tk.tail(session_id, after=max(first, 1) - 1):
        for one in await tk.store.engine.read(session_id, after=recorded.seq - 1, limit=1):
            yield _Stored(recorded, one)


def _line(screen: Screen, recorded: "Recorded") -> str:
    from turnkeeper.cli.event_lines import described

    number, moment = f"{recorded.seq:>5}", _moment(screen, recorded.time)
    kind = f"{recorded.event.KIND:<{KIND_WIDTH}}"
    room = max(20, (screen.width or LINE_WIDTH) - len(f"{number}  {moment}  {kind}  "))
    text = shortened(described(recorded.event), room)
    return f"{number}  {screen.paint(moment, 'dim')}  {screen.paint(kind, 'cyan')}  {text}".rstrip()


def _moment(screen: Screen, ms: int) -> str:
    """The time of an event; on a narrow screen without year and milliseconds, to leave room for what happened."""
    try:
        moment = datetime.fromtimestamp(ms / 1000)
        if screen.width is not None and screen.width < WIDE:
            return moment.strftime("%m-%d %H:%M:%S")
        return moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):  # Imported data may hold any number.
        return screen.date(ms)
