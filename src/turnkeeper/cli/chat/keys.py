"""Key bindings: the meaning of a key, by the state of the chat and whether text is typed. A pure table."""

from typing import Final, Literal, TypeAlias

State: TypeAlias = Literal["idle", "running", "stopping"]
"""State of the chat: waiting for a prompt, showing a turn, or waiting until a stopped turn is settled."""
Key: TypeAlias = Literal["enter", "ctrl-o", "ctrl-c", "ctrl-d"]
Meaning: TypeAlias = Literal[
    "nothing", "send", "steer", "queue", "clear", "hint", "stop", "patience", "delete", "leave", "leave at once"
]

HINT: Final = "Ctrl-D or /quit leaves; /help shows what else there is."
PATIENCE: Final = "The turn is being stopped. Ctrl-D leaves at once; what is recorded stays."

_EMPTY: Final[dict[Key, dict[State, Meaning]]] = {
    "enter": {"idle": "nothing", "running": "nothing", "stopping": "nothing"},
    "ctrl-o": {"idle": "nothing", "running": "nothing", "stopping": "nothing"},
    "ctrl-c": {"idle": "hint", "running": "stop", "stopping": "patience"},
    "ctrl-d": {"idle": "leave", "running": "leave", "stopping": "leave at once"},
}
_TYPED: Final[dict[Key, dict[State, Meaning]]] = {
    "enter": {"idle": "send", "running": "steer", "stopping": "steer"},
    "ctrl-o": {"idle": "send", "running": "queue", "stopping": "queue"},
    "ctrl-c": {"idle": "clear", "running": "stop", "stopping": "patience"},
    "ctrl-d": {"idle": "delete", "running": "delete", "stopping": "delete"},
}


def meaning(key: Key, state: State, *, has_text: bool) -> Meaning:
    """The meaning of a key in a state. Ctrl-C stops a running turn, and the typed text stays."""
    return (_TYPED if has_text else _EMPTY)[key][state]


def hints(state: State) -> str:
    """The keys of a state, for the line below the prompt."""
    match state:
        case "idle":
            return "Alt-Enter new line · /help"
        case "running":
            return "Enter steers · Ctrl-O queues · Ctrl-C stops"
        case "stopping":
            return "stopping · Ctrl-D leaves at once"
