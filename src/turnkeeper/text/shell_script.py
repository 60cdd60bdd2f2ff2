"""A shell command as values: its simple commands, their redirections and the variables that it sets."""

from typing import Final, NamedTuple

from turnkeeper.text.shell_words import Word

CHANGING_DIRECTORY: Final = frozenset({"cd", "chdir", "popd", "pushd"})


class Target(NamedTuple):
    """A file that a command is redirected to or from."""

    word: Word
    is_written: bool


class SimpleCommand(NamedTuple):
    """A command as it is written, with its redirections.

    Without words it is an assignment, a redirection, a test, or an expansion that can run code.
    """

    source: str
    words: tuple[Word, ...] = ()
    targets: tuple[Target, ...] = ()
    assigns: bool = False
    directories: frozenset[tuple[Word, ...]] = frozenset({()})
    """The changes of directory that may have come before it: each way there, as the words of its ``cd`` commands."""
    is_redirection: bool = False
    """Whether it is only a redirection, of statements that are listed as commands of their own."""
    is_opaque: bool = False
    """Whether the commands that it runs are only known when it runs."""
    runs_input: bool = False
    """Whether it runs code from its input."""
    is_repeated: bool = False
    """Whether it stands in a loop or a function."""
    assigned: frozenset[str] = frozenset()
    """The variables that were set before it, so that they no longer have the values of the environment."""


class Script(NamedTuple):
    """The simple commands of a text, inner ones after the one that holds them.

    ``variables`` are those that the text sets, each with all its values.
    """

    commands: tuple[SimpleCommand, ...]
    variables: dict[str, tuple[Word, ...]]
    functions: frozenset[str]
