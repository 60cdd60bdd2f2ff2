"""Share a session: a public, read-only link. Not built yet; every face of the program asks here."""

from turnkeeper.model.refusal import Invalid


def share(session_id: str) -> str:
    """The link to a session. Raises Invalid, which says what there is instead."""
    raise Invalid(
        f"sessions cannot be shared yet, so {session_id} was not published; "
        f"`turnkeeper export {session_id} --sanitize` writes a file to give to others"
    )
