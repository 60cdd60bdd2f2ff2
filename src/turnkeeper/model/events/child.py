"""Child Sessions: work that a call hands to another session."""

from turnkeeper.model.child import ChildTask
from turnkeeper.model.events.base import EventBase


class ChildBegun(EventBase):
    """A running call hands its work to a Child Session, which is created and given its prompt after this."""

    KIND = "child.begun"
    task: ChildTask


class ChildEnded(EventBase):
    """The background work of a Child Session is over for this session. A prompt with its result may come with this."""

    KIND = "child.ended"
    session_id: str
