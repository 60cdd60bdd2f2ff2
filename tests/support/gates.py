"""Two events that code in files, such as plugins, shares with the test that wrote them."""

import threading
from typing import Final

entered: Final = threading.Event()
"""Set by the code, once it has come so far."""
gate: Final = threading.Event()
"""Set by the test, to let the code go on."""


def closed() -> None:
    """Begin anew."""
    entered.clear()
    gate.clear()
