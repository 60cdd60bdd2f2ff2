"""ChildTask: work that a call hands to a Child Session."""

from turnkeeper.model.value import Value


class ChildTask(Value):
    """Work that a call of a session hands to one of its Child Sessions.

    ``session_id`` is the Child Session, ``prompt_id`` the message of the prompt that it is given. ``message_id`` and
    ``call_id`` name the call. ``background``: the call does not wait, and the result comes as a prompt. ``is_over``:
    that prompt has come, and the call is not settled yet.
    """

    session_id: str
    prompt_id: str
    message_id: str
    call_id: str
    agent: str
    background: bool = False
    is_over: bool = False
