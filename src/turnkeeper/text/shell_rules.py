"""Permission patterns of a shell command: its simple commands, the patterns of an approval, and its paths."""

from typing import Final

from turnkeeper.model.value import Value
from turnkeeper.text import shell_parse, wildcard
from turnkeeper.text.shell_parse import SimpleCommand, Word

CHANGING_DIRECTORY: Final = frozenset({"cd", "chdir", "popd", "pushd"})
NAMING_PATHS: Final = CHANGING_DIRECTORY | {"rm", "cp", "mv", "mkdir", "touch", "chmod", "chown", "cat"}
"""Commands whose arguments are paths."""

_RUNNING_OTHERS = (
    "bash busybox command dash doas env eval exec find fish ksh nice nohup parallel setsid sh source ssh strace sudo su"
    " time timeout watch xargs zsh ."
)
RUNNING_OTHERS: Final = frozenset(_RUNNING_OTHERS.split())
"""Commands that run other commands. Approving one with any arguments would approve every command."""


def _arities() -> dict[str, int]:
    two = (
        "bazel brew bun cargo cdk cf cmake composer consul crictl deno docker eksctl firebase flyctl git go gradle"
        " helm heroku hugo ip kind kubectl kustomize make mc minikube mongosh mysql mvn ng npm nvm nx openssl pip"
        " pipenv pnpm poetry podman psql pulumi pyenv python rake rbenv redis-cli rustup serverless skaffold sls sst"
        " swift systemctl terraform tmux turbo ufw vault vercel volta wp yarn"
    )
    three = "aws az doctl gcloud gh sfdx"
    groups = (
        "bun run|x,cargo add|run,consul kv,deno task,docker builder|compose|container|image|network|volume,"
        "eksctl create,git config|remote|stash,ip addr|link|netns|route,kind create,kubectl kustomize|rollout,mc admin,"
        "npm exec|init|run|view,openssl req|x509,pnpm dlx|exec|run,podman container|image,pulumi stack,"
        "terraform workspace,vault auth|kv,yarn dlx|run"
    )
    arities = dict.fromkeys(two.split(), 2) | dict.fromkeys(three.split(), 3)
    for group in groups.split(","):
        name, _, subcommands = group.partition(" ")
        arities |= {f"{name} {subcommand}": 3 for subcommand in subcommands.split("|")}
    return arities


ARITIES: Final = _arities()
"""The number of words that name a command, by its longest known prefix: ``npm run test`` has three; default one."""


class CommandAsk(Value):
    """The permissions that a command needs. ``always`` are the patterns of a permanent approval.

    ``paths`` may be relative or begin with ``~``; they end before the first wildcard.
    """

    patterns: tuple[str, ...]
    always: tuple[str, ...]
    paths: tuple[str, ...]


def command_ask(command: str) -> CommandAsk:
    """The permissions that a command needs.

    A command that cannot be parsed needs permission as a whole and for every piece that may be a command, so that a
    rule for its first word does not allow the rest.
    """
    commands = shell_parse.parse(command)
    if commands is None:
        patterns = (command.strip(), *shell_parse.fragments(command))
        return CommandAsk(
            patterns=tuple(dict.fromkeys(patterns)),
            always=tuple(dict.fromkeys(map(wildcard.literal, patterns))),
            paths=(),
        )
    asked = [simple for simple in commands if not _only_changes_directory(simple)]
    return CommandAsk(
        patterns=tuple(dict.fromkeys(simple.source for simple in asked)),
        always=tuple(dict.fromkeys(_always(simple) for simple in asked)),
        paths=tuple(dict.fromkeys(path for simple in commands for path in _paths(simple))),
    )


def _always(simple: SimpleCommand) -> str:
    """The pattern of a permanent approval: the words that name the command, with any arguments."""
    exact = wildcard.literal(simple.source)
    words = [word.value for word in simple.words]
    if simple.assigns or not words or words[0].rsplit("/", 1)[-1] in RUNNING_OTHERS:
        return exact
    known = (ARITIES.get(" ".join(words[:count])) for count in range(len(words), 0, -1))
    arity = next((arity for arity in known if arity is not None), 1)
    naming = simple.words[:arity]
    prefix = " ".join(words[:arity])
    # A flag does not name a command (``git -C x push``), and rules are matched against the source text.
    is_plain = not any(word.is_dynamic or word.value.startswith("-") or word.pattern_at is not None for word in naming)
    if len(naming) < arity or not is_plain or not f"{simple.source} ".startswith(f"{prefix} "):
        return exact
    return wildcard.literal(prefix) + " *"


def _only_changes_directory(simple: SimpleCommand) -> bool:
    """Whether a command only changes to a directory that its text determines."""
    if not simple.words or simple.words[0].value not in CHANGING_DIRECTORY or simple.targets or simple.assigns:
        return False
    return not any(word.is_dynamic for word in simple.words)


def _paths(simple: SimpleCommand) -> list[str]:
    words = list(simple.targets)
    if simple.words and simple.words[0].value in NAMING_PATHS:
        arguments = [word for word in simple.words[1:] if not word.value.startswith(("-", "+"))]
        words += arguments
        if simple.words[0].value in ("cd", "chdir") and len(simple.words) == 1:
            return ["~", *_written(words)]
    return _written(words)


def _written(words: list[Word]) -> list[str]:
    """The paths that the source text determines. A quoted ``~`` is a file name."""
    paths = []
    for word in words:
        path = word.value if word.pattern_at is None else word.value[: word.pattern_at]
        if not word.is_dynamic and path:
            paths.append(path if not path.startswith("~") or word.source.startswith("~") else f"./{path}")
    return paths
