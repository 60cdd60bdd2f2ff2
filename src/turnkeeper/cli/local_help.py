"""The help page of a command that works on a store or on files of this machine: it does not offer --server."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions


class LocalHelp:
    """Prints a help page as always, without --server."""

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print one panel of it."""
        from cyclopts.help.formatters import DefaultFormatter  # Imports rich, which only a help page needs.

        panel.entries = [one for one in panel.entries if "--server" not in one.names]
        DefaultFormatter()(console, options, panel)

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: object) -> None:
        """Print the first line."""
        from cyclopts.help.formatters import DefaultFormatter

        DefaultFormatter().render_usage(console, options, usage)


LOCAL_HELP: Final = LocalHelp()
