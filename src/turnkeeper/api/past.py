"""Past: what sessions were and did: earlier states, changes of files, and who wrote a line."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from turnkeeper.api.records import Records
from turnkeeper.core.arguments import checked

if TYPE_CHECKING:
    from turnkeeper.sessions.past import PastSession


@checked
class Past(Records):
    """The methods that look back. Imports are inside of them, because most programs do not."""

    @property
    def _environ(self) -> Mapping[str, str]:
        raise NotImplementedError

    async def at(self, session_id: str, seq: int) -> "PastSession":
        """A session as it was after event ``seq``: ``await (await tk.at(session_id, 12)).messages()``."""
        from turnkeeper.sessions.past import past

        return await past(self.store, session_id, seq)
