"""LedgerRow: what one attempt at a request cost."""

from turnkeeper.model.session import Tokens
from turnkeeper.model.value import Value


class LedgerRow(Value):
    """What one attempt cost, whatever came of it; ``time`` is when it was recorded."""

    session_id: str
    time: int
    purpose: str
    provider_id: str
    model_id: str
    message_id: str | None = None
    attempt: int = 1
    tokens: Tokens
    cost: int | float
