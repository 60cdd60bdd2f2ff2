"""The public test kit: recordings, scripted models and servers, contracts. Only the engine contract needs pytest."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnkeeper.core.live_checks import CheckResult as CheckResult
    from turnkeeper.providers.script import Gate as Gate
    from turnkeeper.providers.script import Script as Script
    from turnkeeper.providers.script import ScriptedAnswer as ScriptedAnswer
    from turnkeeper.providers.scripted import Scripted as Scripted
    from turnkeeper.testing.live_recording import replay_check as replay_check
    from turnkeeper.testing.recording import RecordingChanged as RecordingChanged
    from turnkeeper.testing.recording import recorded as recorded
    from turnkeeper.testing.server import ScriptedServer as ScriptedServer

__all__ = [
    "CheckResult",
    "Gate",
    "RecordingChanged",
    "Script",
    "Scripted",
    "ScriptedAnswer",
    "ScriptedServer",
    "recorded",
    "replay_check",
]

_PLACES = {
    "core.live_checks": ("CheckResult",),
    "providers.script": ("Gate", "Script", "ScriptedAnswer"),
    "providers.scripted": ("Scripted",),
    "testing.live_recording": ("replay_check",),
    "testing.recording": ("RecordingChanged", "recorded"),
    "testing.server": ("ScriptedServer",),
}


if not TYPE_CHECKING:  # A type checker would take any misspelt name for one that is loaded here.

    def __getattr__(name: str) -> object:
        """A public name, loaded when it is asked for: the modules of this package are used one by one."""
        from importlib import import_module

        for place, names in _PLACES.items():
            if name in names:
                return getattr(import_module(f"turnkeeper.{place}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
