"""The permissions that a shell command needs: its simple commands, the approval patterns of each, and its paths."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from turnkeeper.model.value import Value
from turnkeeper.text import shell_parse, wildcard
from turnkeeper.text.shell_carried import program, runner_words
from turnkeeper.text.shell_expand import Values
from turnkeeper.text.shell_fragments import fragments
from turnkeeper.text.shell_paths import ShellPath, named_paths
from turnkeeper.text.shell_script import CHANGING_DIRECTORY, Script, SimpleCommand
from turnkeeper.text.shell_tables import INTERPRETERS
from turnkeeper.text.shell_words import Word, literal_word

_RUNNING_OTHERS = (
    ". ash at bash batch bind builtin busybox bwrap caffeinate choom chroot chrt coproc crontab dash dbus-run-session"
    " doas ed emacs enable entr env eval ex exec fakeroot fc fd fdfind firejail fish flock gdb hash ksh linux32 linux64"
    " lldb ltrace mksh nc ncat nix-shell nsenter nvim parallel perf pkexec prlimit rbash runuser script setarch setpriv"
    " sg sh socat source sqlite3 ssh start-stop-daemon strace su sudo systemd-run taskset toybox trap unbuffer unshare"
    " vi view vim watch xvfb-run zsh"
)
RUNNING_OTHERS: Final = frozenset(_RUNNING_OTHERS.split())
"""Commands that run their arguments. An approval of one with any arguments would approve every command."""

RUNNER_WORDS: Final = 2
"""Words before the command of a runner. More are flags, which may change what is run."""

_SYSTEM_PROGRAM: Final = re.compile(r"(/usr(/local)?|/opt/homebrew)?/s?bin/([^/]+)")
_NEEDS_NO_QUOTES: Final = re.compile(r"[\w@%+:,./-][\w@%+=:,./-]*")


def _arities() -> dict[str, int]:
    two = (
        "bazel brew bun bunx cargo cdk cf cmake composer consul crictl deno docker dotnet eksctl firebase"
        " flyctl git go gradle helm heroku hugo ip kind kubectl kustomize make mc minikube mongosh mysql mvn"
        " ng npm npx nvm nx openssl pip pipenv pnpm poetry podman psql pulumi pyenv python rake rbenv"
        " redis-cli rustup serverless skaffold sls sst swift systemctl terraform tmux turbo ufw uv uvx vault"
        " vercel volta wp yarn"
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
"""The number of words that name a command: ``npm run test`` is three. The longest known beginning wins; else one."""


class CommandAsk(Value):
    """The permissions that a command needs. ``always`` are the patterns that a permanent approval would allow.

    ``paths`` are as the shell would see them, relative ones and ``~`` included. ``computed`` are words whose paths are
    only known when the command runs.
    """

    patterns: tuple[str, ...]
    always: tuple[str, ...]
    paths: tuple[ShellPath, ...] = ()
    computed: tuple[str, ...] = ()
    computed_writes: tuple[str, ...] = ()
    """The computed words that are written, or may be written."""


def command_ask(command: str, environ: Mapping[str, str] | None = None) -> CommandAsk:
    """The permissions that a command needs. ``environ`` is the environment that it will run with.

    Of a command that is not understood, the whole is asked about, and with it every piece that might be a command, and
    what a piece that is understood runs: a rule that allows its first word must not let the rest through.
    """
    script = shell_parse.parse(command)
    whole = command.strip()
    if script is None:
        pieces = tuple(dict.fromkeys([whole, *_pieces(command, environ or {})]))
        return CommandAsk(patterns=pieces, always=_literals(pieces), computed=(whole,), computed_writes=(whole,))
    asked = list(_asked(script, whole, environ or {}))
    named = named_paths(script, environ or {})
    return CommandAsk(
        patterns=tuple(dict.fromkeys(simple.source for simple in asked)),
        always=tuple(dict.fromkeys(_always(simple) for simple in asked)),
        paths=named.paths,
        computed=named.computed,
        computed_writes=named.computed_writes,
    )


def _asked(script: Script, whole: str, environ: Mapping[str, str]) -> Iterator[SimpleCommand]:
    """The commands of a script in each form in which a rule may name them."""
    values = Values(script, environ)
    for simple in script.commands:
        if not _is_asked_elsewhere(simple):
            yield from _forms(_with_input(simple, whole), values.at(simple))


def _pieces(command: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Each piece that might be a command, and the commands in it if it is understood by itself."""
    for piece in fragments(command):
        yield piece
        script = shell_parse.parse(piece)
        if script is not None:
            yield from (simple.source for simple in _asked(script, piece, environ))


def _with_input(simple: SimpleCommand, whole: str) -> SimpleCommand:
    """A command that runs its input, together with the whole text, so that an approval covers the input, too."""
    if not simple.runs_input:
        return simple
    text = whole if whole.startswith(simple.source) else f"{simple.source} # {whole}"
    return simple._replace(source=text, is_opaque=True)


def _literals(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(wildcard.literal, patterns)))


def _forms(simple: SimpleCommand, values: Values) -> Iterator[SimpleCommand]:
    """A command as it is written, and, if different, in the spelling of rules.

    Otherwise ``'rm' x``, ``/bin/rm x``, ``A=1 rm x``, ``>log rm x`` and ``X=rm; $X x`` would get around a rule about
    ``rm *``.
    """
    yield simple
    if not simple.words:
        return
    first, *rest = simple.words
    for name in values.texts(first) or _known_part(first):
        # A wildcard in the directory finds the system's programs too.
        is_system = _SYSTEM_PROGRAM.fullmatch(re.sub(r"^.*[*?\[].*/", "/bin/", name))
        yield from _respelled(simple, literal_word(is_system[3] if is_system else name), rest)


def _known_part(name: Word) -> list[str]:
    """The known part of a program's name, as if the unknown parts were empty: ``rm`` of ``rm$x``."""
    known = "".join(piece.text for piece in name.pieces if piece.kind in ("bare", "quoted"))
    return [known] if known and "/" not in known else []


def _respelled(simple: SimpleCommand, named: Word, rest: list[Word]) -> Iterator[SimpleCommand]:
    """The command with its program under this name, and without needless quotes and braces, if that is another text."""
    words = (named, *rest)
    count = max(_arity(words), 1)
    naming = [word for place, word in enumerate((simple.words[0], *rest)) if place < count or word.value[:1] == "-"]
    keeps_braces = all(word.braces is None for word in naming)

    def spelt(place: int, word: Word) -> str:
        if _is_needless(word) and (place < count or _hides_flag(word)):
            return word.value
        return word.written if keeps_braces else word.source

    texts = [spelt(place, word) for place, word in enumerate(words)]
    plain = " ".join(text for text in texts if text)
    if simple.source != plain and not simple.source.startswith(f"{plain} "):
        yield simple._replace(source=plain, words=(named, *rest), assigns=False)


def _hides_flag(word: Word) -> bool:
    return re.match(r"--?\w", word.value) is not None and word.source.split("=")[0] != word.value.split("=")[0]


def _is_needless(word: Word) -> bool:
    """Whether a word is quoted, or escaped, without need."""
    return not word.is_dynamic and _NEEDS_NO_QUOTES.fullmatch(word.value) is not None


def _always(simple: SimpleCommand) -> str:
    """The pattern for this command with any further arguments, if its first words determine what it does."""
    exact = wildcard.literal(simple.source)
    if (count := runner_words(simple.words)) and not simple.assigns:
        # What the runner runs says what is done: "poetry run pytest *".
        before = " ".join(word.value for word in simple.words[:count])
        if not simple.source.startswith(f"{before} ") or count > RUNNER_WORDS:
            return exact
        inner = simple._replace(source=simple.source.removeprefix(f"{before} "), words=simple.words[count:])
        return f"{wildcard.literal(before)} {_always(inner)}"
    words = [word.value for word in simple.words]
    if simple.assigns or simple.is_opaque or not words or program(simple.words) in RUNNING_OTHERS:
        return exact
    naming = simple.words[: _arity(simple.words)]
    prefix = " ".join(words[: len(naming)])
    # A flag says nothing of what is done (``git -C x push``), and a rule is matched against the text as written.
    is_plain = not any(
        word.is_dynamic or word.value.startswith("-") or word.pattern_at is not None or "=" in word.value
        for word in naming
    )
    if len(naming) < _arity(simple.words) or not is_plain or not f"{simple.source} ".startswith(f"{prefix} "):
        return exact
    return wildcard.literal(prefix) + " *"


def _arity(words: tuple[Word, ...]) -> int:
    """The number of words that name a command. A program that runs code is named with its code."""
    values = [word.value for word in words]
    known = (ARITIES.get(" ".join(values[:count])) for count in range(min(len(values), 3), 0, -1))
    arity = next((arity for arity in known if arity is not None), 1)
    is_interpreter = program(words) in INTERPRETERS or re.fullmatch(r"(python|ruby|perl|node)[\d.]+", program(words))
    return max(arity, 2) if is_interpreter else arity


def _is_asked_elsewhere(simple: SimpleCommand) -> bool:
    """Whether a command only names paths, which are asked about as such: redirections, and changes of directory.

    A change to a directory that cannot be read off the text is asked about.
    """
    if simple.is_redirection:
        return True
    if not simple.words or simple.words[0].value not in CHANGING_DIRECTORY or simple.targets or simple.assigns:
        return False
    return not any(word.is_dynamic for word in simple.words)
