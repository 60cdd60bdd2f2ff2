"""The command that prints a script with which a shell completes command lines."""

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer

PROGRAMS: Final = ("turnkeeper", "tk")
"""The names that the program is called by."""

Shell = Literal["bash", "zsh", "fish"]


def completion(
    shell: Annotated[Shell, Parameter(metavar="SHELL", help="bash, zsh or fish.")], /, *, options: Options
) -> None:
    """Print a script with which bash, zsh or fish completes command lines.

    It completes commands, options, files, and what only the store or the server
    knows: sessions by slug or id, models, agents. It does so for `tk`, too. After
    an update, write it again. With --json the answer is {"shell", "script"}.

    For example:
      turnkeeper completion bash > ~/.turnkeeper-completion.bash
      echo '. ~/.turnkeeper-completion.bash' >> ~/.bashrc
      turnkeeper completion zsh > ~/.turnkeeper-completion.zsh
      echo '. ~/.turnkeeper-completion.zsh' >> ~/.zshrc     # after compinit
      turnkeeper completion fish > ~/.config/fish/conf.d/turnkeeper.fish
    """
    text = script(shell)
    answer(options, {"shell": shell, "script": text}, lambda _: text)


def script(shell: Shell) -> str:
    """The script for a shell, for each name of the program."""
    from turnkeeper.cli.commands import app

    made = [app.generate_completion(prog_name=name, shell=shell) for name in PROGRAMS]
    if shell == "zsh":
        # Read from a start-up file, a script has to register itself: its first line only counts in $fpath.
        made += [f"compdef _cyclopts_{name} {name}" for name in PROGRAMS]
    return "\n".join(made)
