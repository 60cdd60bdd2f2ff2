"""The sandbox of a place: what is writable and protected there, on old kernels and new ones."""

import errno
import os
import platform
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from confined import ConfinedWorld, needs, needs_kernel, restrict, without_powers

from turnkeeper.core.sandbox import Confinement
from turnkeeper.model.config import SandboxConfig, SandboxMode
from turnkeeper.workspace import capabilities, landlock, sandbox, seatbelt
from turnkeeper.workspace.temporary import TemporaryDirectories


@needs_kernel
async def test_only_the_command_is_confined_and_not_the_program_that_starts_it(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path)
    assert (await world.run("echo x > $OUT/file")).exit_code == 1
    (world.outside / "file").write_text("written\n")
    done = subprocess.run(["/bin/sh", "-c", f"echo x > {world.outside}/new"], check=False)
    assert (done.returncode, threading.active_count() < 50) == (0, True)


@needs_kernel
async def test_a_project_that_holds_this_programs_files_does_not_give_them_away(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path)
    world.project = world.home
    (world.home / "work").mkdir()
    before = (world.home / ".config/turnkeeper/turnkeeper.json").read_text()
    ran = await world.run(
        "echo x > work/new; echo x > .config/turnkeeper/turnkeeper.json; cat .local/share/*/auth.json"
    )
    assert (world.home / "work/new").exists()
    assert (world.home / ".config/turnkeeper/turnkeeper.json").read_text() == before
    assert "secret" not in ran.output


@needs_kernel
async def test_a_link_in_a_project_that_holds_protected_files_gives_nothing_outside(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path)
    world.project = world.home
    os.symlink(world.outside, world.home / "link")
    await world.run("echo x > link/file; echo x > ~/link/new")
    assert sorted(os.listdir(world.outside)) == ["file", "folder"]
    assert (world.outside / "file").read_text() == "old\n"


@needs_kernel
async def test_a_linked_worktree_can_be_committed_to(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path)
    made = "git init -q . && git add -A && git commit -qm one && git worktree add -q ../other"
    subprocess.run(["/bin/sh", "-c", made], cwd=world.project, env=world.environ, check=True, capture_output=True)
    world.project = world.root / "other"
    ran = await world.run("echo x > new && git add new && git commit -qm two && git log --oneline | wc -l")
    assert (ran.exit_code, ran.output.strip()) == (0, "2")


@needs_kernel
async def test_a_submodule_can_be_committed_to(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path)
    made = (
        "git init -q ../source && git -C ../source commit -q --allow-empty -m one && git init -q . &&"
        " git -c protocol.file.allow=always submodule --quiet add ../source sub"
    )
    subprocess.run(["/bin/sh", "-c", made], cwd=world.project, env=world.environ, check=True, capture_output=True)
    world.project /= "sub"
    ran = await world.run("echo x > new && git add new && git commit -qm two && git log --oneline | wc -l")
    assert (ran.exit_code, ran.output.strip()) == (0, "2")


LEADING = {
    "a file": 'echo "gitdir: $OUT/.git" > .git',
    "a link": "ln -s $OUT/.git .git",
    "a link to a linked worktree": "ln -s $OUT/.git/worktrees/linked .git",
    "a file that names a linked worktree": 'echo "gitdir: $OUT/.git/worktrees/linked" > .git',
    "a directory of its own with a common one elsewhere": (
        'mkdir own && echo "gitdir: own" > .git && cp $OUT/.git/HEAD own &&'
        ' echo "$PWD/.git" > own/gitdir && echo $OUT/.git > own/commondir'
    ),
    "a directory of its own in a folder for worktrees": (
        'mkdir -p worktrees/own && echo "gitdir: worktrees/own" > .git && cp $OUT/.git/HEAD worktrees/own &&'
        ' echo "$PWD/.git" > worktrees/own/gitdir && echo $OUT/.git > worktrees/own/commondir'
    ),
}


@needs_kernel
@pytest.mark.parametrize("kind", LEADING)
async def test_a_git_directory_that_belongs_to_another_worktree_is_not_writable(tmp_path: Path, kind: str) -> None:
    world = ConfinedWorld(tmp_path)
    made = "git init -q && git add -A && git commit -qm one && git worktree add -q ../linked"
    subprocess.run(["/bin/sh", "-c", made], cwd=world.outside, env=world.environ, check=True, capture_output=True)
    before = world.outside_files()
    assert (await world.run(LEADING[kind])).exit_code == 0
    ran = await world.run("git status; echo x > $OUT/.git/hooks/pre-commit; echo x > $OUT/.git/worktrees/linked/HEAD")
    assert "Permission denied" in ran.output
    assert world.outside_files() == before


@needs_kernel
@pytest.mark.parametrize("version", range(1, landlock.abi() + 1))
def test_every_version_of_the_interface_refuses_what_it_can(tmp_path: Path, version: int) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "file").write_text("old")
    confined = Confinement(mode="workspace", write=(str(inside),), devices=("/dev/null",))

    def work() -> None:
        restrict(confined, version)
        (inside / "new").write_text("x")
        for name in ("file", "new"):
            try:
                (outside / name).write_text("x")
            except PermissionError as error:
                refused.append(Path(error.filename).name)

    refused: list[str] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert refused == ["file", "new"]
    assert (inside / "new").read_text() == "x"
    assert (outside / "file").read_text() == "old"


@needs_kernel
async def test_a_command_that_cannot_be_confined_does_not_run(tmp_path: Path) -> None:
    # The kernel nests sixteen restrictions at the most; this process stands in for one that is inside fifteen.
    script = """
import os, sys
import anyio
from confined import restrict
from pathlib import Path
from turnkeeper.core.sandbox import Confinement
from turnkeeper.workspace import shell
confined = Confinement(mode="workspace", write=(sys.argv[1],), devices=("/dev/null",))
for _ in range(16):
    restrict(confined)
run = lambda: shell.run("touch made", Path(sys.argv[1]), environ=dict(os.environ), timeout_s=60, confined=confined)
try:
    anyio.run(run)
except OSError as error:
    print("refused")
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-B", "-c", script, str(tmp_path)], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.stdout, os.listdir(tmp_path)) == ("refused\n", [])


@needs_kernel
async def test_a_confined_command_cannot_end_the_program_that_started_it(tmp_path: Path) -> None:
    if landlock.abi() < 6:
        pytest.skip("this kernel does not confine signals")
    ran = await ConfinedWorld(tmp_path).run(f"kill -0 {os.getpid()}")
    assert "Operation not permitted" in ran.output


@needs_kernel
@pytest.mark.parametrize("mode", ["workspace", "read-only"])
async def test_a_confined_command_cannot_limit_a_program_outside(tmp_path: Path, mode: SandboxMode) -> None:
    """A limit of 1 s of processor time, or of files of no length, ends a program or keeps it from writing its store."""
    limits = "(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))"
    script = f"import resource; resource.prlimit({os.getpid()}, *{limits})"
    ran = await ConfinedWorld(tmp_path, SandboxConfig(mode=mode)).run(f'python3 -c "{script}"')
    assert "PermissionError: [Errno 1] Operation not permitted" in ran.output


@needs_kernel
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the other calls of this processor are not known")
@pytest.mark.parametrize("how", ["int $0x80", "syscall"])
async def test_nor_by_the_calls_of_another_kind_of_program(tmp_path: Path, how: str) -> None:
    needs("gcc")
    world, number = ConfinedWorld(tmp_path), {"int $0x80": 340, "syscall": 0x40000000 + 302}[how]
    (world.project / "limit.c").write_text(_FOREIGN_LIMIT.format(how=how, number=number, pid=os.getpid()))
    ran = await world.run("gcc -O1 -o limit limit.c && ./limit")
    if "-38" in ran.output:
        pytest.skip("this kernel does not have these calls")
    assert ran.output == "-1\n"


_FOREIGN_LIMIT = """
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
int main(void) {{
    struct rlimit64 *same = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    prlimit64({pid}, RLIMIT_NOFILE, 0, same);
    long answer;
    if ({number} == 340)
        __asm__ volatile("{how}" : "=a"(answer) : "a"({number}), "b"({pid}), "c"(RLIMIT_NOFILE), "d"(same), "S"(0)
            : "memory", "r8", "r9", "r10", "r11");
    else {{
        register long unused __asm__("r10") = 0;
        __asm__ volatile("{how}" : "=a"(answer) : "a"({number}), "D"({pid}), "S"(RLIMIT_NOFILE), "d"(same), "r"(unused)
            : "memory", "rcx", "r11");
    }}
    printf("%d\\n", (int)answer);
}}
"""


@needs_kernel
async def test_a_confined_command_limits_itself_and_reads_the_limits_of_others(tmp_path: Path) -> None:
    reading = f'python3 -c "import resource; print(len(resource.prlimit({os.getpid()}, resource.RLIMIT_NOFILE)))"'
    ran = await ConfinedWorld(tmp_path).run(f"ulimit -n 99 && ulimit -n && prlimit --core=0 echo fine && {reading}")
    assert ran.output == "99\nfine\n2\n"


@needs_kernel
@pytest.mark.parametrize("mode", ["workspace", "read-only"])
async def test_a_command_has_no_power_over_the_whole_machine(tmp_path: Path, mode: SandboxMode) -> None:
    world = ConfinedWorld(tmp_path, SandboxConfig(mode=mode))
    ran = await world.run("grep -E '^Cap|^NoNewPrivs' /proc/self/status")
    held = dict(line.split(":\t") for line in ran.output.splitlines())
    assert (held.pop("CapInh"), held.pop("CapAmb"), held.pop("NoNewPrivs")) == ("0" * 16, "0" * 16, "1")
    if os.getuid() != 0:
        del held["CapBnd"]  # Only root may limit it, and nobody else gains anything by it.
    assert all(int(found, 16) & ~capabilities.KEPT == 0 for found in held.values()), held


@needs_kernel
async def test_a_command_makes_no_device(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path)
    ran = await world.run("mknod null c 1 3; mknod loop b 7 0; mkfifo pipe; ls -l null loop pipe")
    assert ran.output.count("mknod: ") == 2
    assert sorted(os.listdir(world.project)) == ["file", "pipe"]


@needs_kernel
def test_landlock_alone_refuses_devices(tmp_path: Path) -> None:
    # Where this is not run as root, every kernel refuses them anyway, with another number.
    refused: list[int | None] = []

    def work() -> None:
        restrict(Confinement(mode="workspace", write=(str(tmp_path),)))
        for kind in (stat.S_IFCHR, stat.S_IFBLK):
            try:
                os.mknod(tmp_path / "device", kind | 0o600, os.makedev(1, 3))
            except OSError as error:
                refused.append(error.errno)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert refused == [errno.EACCES if os.getuid() == 0 else errno.EPERM] * 2


@needs_kernel
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
async def test_root_can_still_give_files_away_and_run_as_somebody_else(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path)
    ran = await world.run(
        "chown 1:1 file && chmod 600 file && cat file && chmod 4755 file &&"
        " python3 -c 'import os; os.setgid(1); os.setuid(1); print(os.getuid())'"
    )
    assert (ran.exit_code, ran.output) == (0, "inside\n1\n")


@needs_kernel
async def test_only_the_command_loses_powers(tmp_path: Path) -> None:
    before = Path("/proc/self/status").read_text().split("Cap", 1)[1].split("Seccomp")[0]
    await ConfinedWorld(tmp_path).run("true")
    assert Path("/proc/self/status").read_text().split("Cap", 1)[1].split("Seccomp")[0] == before


@needs_kernel
async def test_modes_and_times_of_files_outside_are_not_covered_in_a_workspace(tmp_path: Path) -> None:
    # The guide says so. When this fails the kernel has learnt it, and the guide can be shorter.
    world = ConfinedWorld(tmp_path)
    await world.run("chmod 600 $OUT/file")
    assert (world.outside / "file").stat().st_mode & 0o777 == 0o600


def test_excluded_paths_are_left_out_by_naming_their_siblings(tmp_path: Path) -> None:
    for name in ("a/x/one", "a/x/two", "a/y", "b"):
        (tmp_path / name).mkdir(parents=True)
    os.symlink(tmp_path / "b", tmp_path / "a/link")

    def covered(*excluded: str) -> list[str]:
        roots = [str(tmp_path / name) for name in ("a", "b")]
        found = landlock.covering(roots, [str(tmp_path / name) for name in excluded])
        return sorted(os.path.relpath(path, tmp_path) for path in found)

    assert covered() == ["a", "b"]
    assert covered("a") == ["b"]
    assert covered("a/x") == ["a/y", "b"]
    assert covered("a/x/one", "b") == ["a/x/two", "a/y"]
    assert covered("elsewhere") == ["a", "b"]


@needs_kernel
@pytest.mark.parametrize("mode", ["workspace", "read-only"])
def test_below_a_directory_that_cannot_be_listed_all_but_the_keys_is_read(tmp_path: Path, mode: SandboxMode) -> None:
    # As /home is on a machine that many share.
    world = ConfinedWorld(tmp_path / "shared", SandboxConfig(mode=mode))
    keys = world.home / ".local/share/turnkeeper/auth.json"
    (world.home / "notes").write_text("mine")
    wanted = (world.project / "file", world.home / "notes", keys)
    confined, read, refused = world.confinement(), list[str](), list[str]()

    def work() -> None:
        without_powers()
        restrict(confined)
        for path in wanted:
            try:
                read.append(path.read_text())
            except PermissionError:
                refused.append(path.name)

    world.root.chmod(0o311)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    world.root.chmod(0o755)
    assert (confined.read, read, refused) == (None, ["inside\n", "mine"], ["auth.json"])


def test_a_cache_is_made_for_a_program_that_is_there_and_for_no_other(tmp_path: Path) -> None:
    for name in ("npm", "sh"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    environ = {"HOME": str(home), "PATH": str(tmp_path), "CARGO_HOME": str(tmp_path / "cargo")}
    (tmp_path / "cargo/registry").mkdir(parents=True)
    found = sandbox.places(environ).caches
    assert found == tuple(str(one) for one in (home / ".cache", home / ".npm", tmp_path / "cargo/registry"))
    assert sorted(os.listdir(home)) == [".cache", ".npm"]


@needs_kernel
async def test_a_writable_path_that_a_command_replaces_by_a_link_gives_nothing_outside(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path, SandboxConfig(write=("out", "deep/out")))
    await world.run("ln -s $OUT out; ln -s $OUT/.. deep")
    assert os.readlink(world.project / "out") == str(world.outside)
    ran = await world.run("echo x > $OUT/new; echo x > out/new; echo x > $OUT/../out; echo x > here")
    assert (world.project / "here").exists(), ran.output
    assert sorted(os.listdir(world.outside)) == ["file", "folder"]


def test_a_cache_that_is_a_link_in_a_writable_place_gives_nothing_outside(tmp_path: Path) -> None:
    home, project, outside, large = (tmp_path / name for name in ("home", "project", "outside", "large"))
    for place in (home, project, outside, large):
        place.mkdir()
    environ = {"HOME": str(home), "PATH": "/nowhere"}
    (home / ".cache").symlink_to(large)

    def caches(**variables: str) -> tuple[str, ...]:
        return sandbox.policy("workspace", project, project, {**environ, **variables}).places.caches

    # The user's own link, which no command can replace.
    assert caches() == (str(large),)
    (large / "npm").symlink_to(outside)
    (project / "cargo").symlink_to(outside)
    (outside / "registry").mkdir()
    assert caches(npm_config_cache=str(large / "npm"), CARGO_HOME=str(project / "cargo")) == (str(large),)
    assert caches(npm_config_cache=str(home / ".cache/npm")) == (str(large),)


def test_no_directory_of_programs_is_a_cache() -> None:
    assert not [one.path for one in sandbox.CACHES if Path(one.path).name in ("bin", "shims")]
    assert not {".cargo", "go", ".local", ".config"} & {one.path for one in sandbox.CACHES}


def test_a_system_without_a_sandbox_says_so() -> None:
    assert sandbox.unavailable("win32") == "there is no sandbox for win32"
    assert sandbox.unavailable("darwin") in (None, "/usr/bin/sandbox-exec is missing")


@needs_kernel
def test_a_policy_that_is_off_stays_off(tmp_path: Path) -> None:
    assert sandbox.policy(SandboxConfig(mode="off"), tmp_path, tmp_path, {"HOME": "/h"}).mode == "off"
    assert sandbox.policy("off", tmp_path, tmp_path, {"HOME": "/h"}).mode == "off"
    assert sandbox.policy(SandboxConfig(), tmp_path, tmp_path, {"HOME": "/h"}).mode == "workspace"


def test_a_session_has_a_temporary_directory_that_only_its_user_can_enter(tmp_path: Path) -> None:
    given = TemporaryDirectories({"TMPDIR": str(tmp_path)})
    first = Path(given.directory("ses_one"))
    assert first == Path(TemporaryDirectories({"TMPDIR": str(tmp_path)}).directory("ses_one"))
    assert first != Path(given.directory("ses_two"))
    assert {place.stat().st_mode & 0o777 for place in (first, first.parent)} == {0o700}
    (first / "kept").write_text("x")
    given.remove(["ses_one"])
    assert sorted(first.parent.iterdir()) == [Path(given.directory("ses_two"))]


@pytest.mark.parametrize("named", ["gone", "a file", ""])
def test_where_tmpdir_names_no_directory_the_systems_is_used(tmp_path: Path, named: str) -> None:
    (tmp_path / "a file").touch()
    given = TemporaryDirectories({"TMPDIR": str(tmp_path / named) if named else ""})
    made = given.directory("ses_nowhere")
    given.remove(["ses_nowhere"])
    assert Path(made).is_relative_to(os.path.realpath(tempfile.gettempdir()))
    assert not Path(made).is_relative_to(tmp_path)


@pytest.mark.parametrize("kind", ["link", "open"])
def test_a_temporary_directory_that_somebody_else_prepared_is_not_used(tmp_path: Path, kind: str) -> None:
    trap, name = tmp_path / "trap", tmp_path / f"turnkeeper-{os.getuid()}"
    trap.mkdir()
    if kind == "link":
        name.symlink_to(trap)
    else:
        name.mkdir()
        name.chmod(0o777)
    given = Path(TemporaryDirectories({"TMPDIR": str(tmp_path)}).directory("ses_one"))
    assert not given.is_relative_to(name)
    assert (os.listdir(trap), given.parent.stat().st_mode & 0o777) == ([], 0o700)


def test_the_profile_for_macos_says_the_same() -> None:
    confined = Confinement(
        mode="workspace",
        write=("/p", '/with "quotes"'),
        protected=("/h/tk",),
        hidden=("/h/tk/auth.json",),
        network=False,
    )
    assert seatbelt.profile(confined).splitlines()[2:] == [
        "(deny file-write*)",
        '(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx")'
        ' (regex #"^/dev/ttys[0-9]+$") (regex #"^/dev/fd/"))',
        '(allow file-write* (subpath "/p") (subpath "/with \\"quotes\\""))',
        '(deny file-write* (subpath "/h/tk"))',
        '(deny file-read* (subpath "/h/tk/auth.json"))',
        "(deny network*)",
        "(allow network* (remote unix-socket))",
    ]
    assert "(deny file-read-data)" in seatbelt.profile(confined.but(read=("/p",)))
