"""Programs that run other commands, and the places of these commands among the words."""

import re
from typing import Final

_SHELL_NAMES: Final = "sh bash dash zsh ksh mksh fish ash rbash"
SHELLS: Final = frozenset(_SHELL_NAMES.split())
_INTERPRETER_NAMES: Final = (
    "python python2 python3 pypy pypy3 perl ruby node nodejs php lua luajit tclsh Rscript osascript awk gawk"
    " mawk nawk expect"
)
INTERPRETERS: Final = frozenset(_INTERPRETER_NAMES.split())
"""Programs that run code from their arguments or their input. The code is not looked into."""

PREFIXES: Final[dict[str, tuple[str, int]]] = {
    "sudo": ("-u -g -h -p -C -T -U -r -t -D -R --user --group --host --prompt --chdir --chroot --role --type", 0),
    "doas": ("-u -C", 0),
    "env": ("-u -C --unset --chdir", 0),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n -p --class --classdata", 0),
    "chrt": ("", 1),
    "taskset": ("", 1),
    "time": ("-f -o --format --output", 0),
    "timeout": ("-s -k --signal --kill-after", 1),
    "gtimeout": ("-s -k --signal --kill-after", 1),
    "stdbuf": ("-i -o -e --input --output --error", 0),
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("-a", 0),
    "chroot": ("", 1),
    "strace": ("-e -o -p -s -u -E -P -a -b -I -O -S -X", 0),
    "ltrace": ("-e -o -p -s -u -n -a", 0),
    "busybox": ("", 0),
    "toybox": ("", 0),
    "flock": ("-w -E --timeout --conflict-exit-code", 1),
    "chronic": ("", 0),
    "unbuffer": ("", 0),
    "caffeinate": ("-t -w", 0),
    "systemd-run": ("-p -u --unit --property --slice --uid --gid", 0),
    "entr": ("", 0),
    "xargs": (
        "-I -n -P -L -d -E -s -a --max-args --max-procs --delimiter --arg-file --max-chars",
        0,
    ),
    "setpriv": ("", 0),
    "setarch": ("", 1),
    "linux32": ("", 0),
    "linux64": ("", 0),
    "unshare": ("-S -G -R -w -l --setuid --setgid --root --wd --propagation --map-user --map-group", 0),
    "nsenter": ("-t -S -G --target --setuid --setgid", 0),
    "runuser": ("-u -g -G -s -w --user --group --supp-group --shell --whitelist-environment", 0),
    "pkexec": ("--user", 0),
    "dbus-run-session": ("", 0),
    "xvfb-run": ("-n -s -f -e -p -w --server-num --server-args --auth-file --error-file --xauth-protocol --wait", 0),
    "prlimit": ("-p --pid", 0),
    "choom": ("-n -p --adjust --pid", 0),
    "fakeroot": ("-l -s -i -b --lib --faked", 0),
    "watch": ("-n --interval", 0),
    "parallel": ("-j -N -n -L -a -S --jobs --delay --retries --joblog --results --arg-file --colsep --sshlogin", 0),
}
"""Programs that run the command behind them: flags that take a value, and the number of words before the command."""

GIT_RUNS: Final = re.compile(
    r"(alias\..*|core\.(pager|editor|sshcommand|fsmonitor|askpass|hookspath|gitproxy)|pager\..*|.*\.(helper|command"
    r"|cmd|driver|clean|smudge|process|textconv|external|program|editor|path|sshcommand|vcs|uploadpack|receivepack))",
    re.IGNORECASE,
)
OPTIONS: Final = {
    "tar": "--to-command --use-compress-program --rsh-command --info-script --new-volume-script -I -F",
    "rsync": "--rsh -e --rsync-path",
    "rg": "--pre --hostname-bin",
    "sort": "--compress-program",
    "man": "-P --pager",
    "git": "--upload-pack --receive-pack --exec --exec-path --tree-filter --index-filter --msg-filter --env-filter"
    " --extcmd --open-files-in-pager",
    "su": "-c --command",
    "script": "-c --command",
    "flock": "-c --command",
    "env": "-S --split-string",
    "zip": "-TT --unzip-command",
    "make": "--eval -E",
    "runuser": "-c --command",
    "npx": "-c --call",
    "nix-shell": "--run --command",
    "scp": "-S",
    "sftp": "-S",
    "ag": "--pager",
    "go": "-toolexec -vettool -exec",
    "mapfile": "-C",
    "readarray": "-C",
    "compgen": "-C",
    "complete": "-C",
    **dict.fromkeys(("cc", "gcc", "g++", "clang", "clang++"), "-wrapper"),
}
"""Options whose value is a command, by the program that takes them."""

GIT_OPTIONS: Final = {"rebase": "-x", "grep": "-O", "clone": "-u", "difftool": "-x"}
"""Options of single git commands whose value is a command."""

RUNNERS: Final[dict[str, dict[str, str]]] = {
    "bundle": {"exec": ""},
    "conda": {"run": "-n -p --name --prefix --cwd"},
    "hatch": {"run": ""},
    "npm": {"exec": "-p -w --package --workspace", "x": "-p -w --package --workspace"},
    "pdm": {"run": "-p --project"},
    "pipenv": {"run": ""},
    "pixi": {"run": "-e --environment --manifest-path"},
    "pnpm": {"exec": ""},
    "poetry": {"run": ""},
    "rbenv": {"exec": ""},
    "pyenv": {"exec": ""},
    "rye": {"run": ""},
    "uv": {"run": "-p --python --with --extra --group --env-file --directory --project --package --with-requirements"},
    "yarn": {"exec": ""},
}
"""Commands of programs that run the command behind them, with their flags that take a value."""

NAMING_VARIABLES: Final = frozenset(["printf", "test", "[", "read", "let", "wait", "mapfile", "readarray", "getopts"])
"""Builtins of the shell that take names of variables or arithmetic. A subscript in one is expanded once more."""
