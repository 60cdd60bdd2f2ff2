"""Settings: how sessions are run in this process."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random

import anyio
import msgspec

from turnkeeper.context.component import ContextComponent
from turnkeeper.core.labels import ANY_HOST, HostLabels
from turnkeeper.core.lease import Terms
from turnkeeper.model.value import JsonObject
from turnkeeper.plugins.plugin import Limits
from turnkeeper.run.asking import Responders
from turnkeeper.run.directories import Transport
from turnkeeper.run.leases import Pace
from turnkeeper.run.permission import Asker, QuestionAsker, dismiss_all, reject_all
from turnkeeper.run.summarise import Hooks
from turnkeeper.tools import load as load_tools
from turnkeeper.tools.tool import AnyTool


class Settings(msgspec.Struct, frozen=True):
    """How sessions are run here; the defaults are for people, the rest for tests."""

    ask: Asker | None = reject_all
    """Asks for permission in this process. None: requests wait until a client or another process answers."""
    question: QuestionAsker | None = dismiss_all
    """Answers questions of models in this process. None: they wait likewise."""
    is_attended: bool = True
    """Whether these also answer requests that an earlier process left. With ``reject_all`` they never do."""
    transport: Transport | None = None
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    random: Callable[[], float] = Random().random
    runs: bool = True
    """Whether sessions are run in this process. Else workers are asked to (run/wakes.py)."""
    labels: HostLabels = ANY_HOST
    """The labels of this host: which sessions may be run here."""
    needs_directory: bool = False
    """Whether sessions whose directory does not exist here are left to other hosts."""
    delegates: bool = False
    """Whether workers are asked to run the sessions that may not be run here; else they are refused."""
    lease: Terms | None = None
    """The times of the lease on the sessions that are run here; None: as the store suggests."""
    pace: Pace = Pace()
    """The clock of the lease, which never steps."""
    titles: bool = True
    snapshots: bool = True
    """Whether changes of files are recorded, where the configuration does not forbid it."""
    hooks: Hooks = msgspec.field(default_factory=Hooks)
    tools: Callable[[], Sequence[AnyTool]] = load_tools
    environ: Mapping[str, str] = msgspec.field(default_factory=lambda: os.environ)
    started_ns: int | None = None
    """When the program was started; now by default. ``TURNKEEPER_TRUST`` does not trust files that changed since."""
    config: JsonObject = msgspec.field(default_factory=dict)
    """Settings that override those of all files, as ``turnkeeper.json`` would have them."""
    plugin_limits: Limits = Limits()
    """The time limits of plugins."""
    components: Sequence[ContextComponent] = ()
    """Further Context Components."""

    @property
    def responders(self) -> Responders:
        """The callbacks of this process that answer requests to the user."""
        is_attended = self.is_attended and self.ask is not reject_all
        return Responders(permission=self.ask, question=self.question, is_attended=is_attended)
