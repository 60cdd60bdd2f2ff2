"""Turnkeeper: an open store, with everything that can be done with its sessions."""

import warnings
from collections.abc import Callable

from turnkeeper.api.asking import Asking
from turnkeeper.api.commanding import Commanding
from turnkeeper.api.interchange import Interchange
from turnkeeper.api.past import Past
from turnkeeper.api.requests import Requests
from turnkeeper.api.reverting import Reverting
from turnkeeper.api.sharing import Sharing
from turnkeeper.bus import Listener
from turnkeeper.core.arguments import checked
from turnkeeper.model.notification import AnyNotification, Notification


@checked
class Turnkeeper(Requests, Asking, Sharing, Commanding, Past, Reverting, Interchange):
    """Durable agent sessions. Every method is safe to call from several tasks and several processes at once."""

    def publish(self, notification: Notification) -> None:
        """Publish a notification that is not derived from an event, such as a question to the user."""
        self._bus.publish(notification)

    def listen(self, receive: Callable[[AnyNotification], None]) -> Listener[AnyNotification]:
        """Deprecated: use ``subscribe``. Calls ``receive`` with each new notification until the listener is closed."""
        warnings.warn("listen is deprecated; use subscribe", DeprecationWarning, stacklevel=2)
        return self._bus.listen(receive)
