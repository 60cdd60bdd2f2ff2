"""LedgerRow: the usage and cost of one attempt at a request."""

from turnkeeper.model.session import Tokens
from turnkeeper.model.value import Value


class LedgerRow(Value):
    """The usage and cost of one attempt, also of a failed one; ``time`` is the time of recording."""

    session_id: str
    time: int
    purpose: str
    provider_id: str
    model_id: str
    message_id: str | None = None
    attempt: int = 1
    tokens: Tokens
    cost: int | float
