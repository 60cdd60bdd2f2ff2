"""What people do every day works inside the sandbox, and what nobody should do there does not."""

import socket
import sys
from pathlib import Path

import pytest
from confined import ConfinedWorld, needs, needs_kernel

from turnkeeper.model.config import SandboxConfig
from turnkeeper.model.permission import Rule

pytestmark = needs_kernel

REPOSITORY = "git init -q -b main . && git add -A && git commit -qm one && "

WHEEL = (
    'import zipfile; w = zipfile.ZipFile("x-1-py3-none-any.whl", "w"); i = "x-1.dist-info/"; '
    'w.writestr("x.py", ""); w.writestr(i + "METADATA", "Metadata-Version: 2.1\\nName: x\\nVersion: 1\\n"); '
    'w.writestr(i + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"); '
    'w.writestr(i + "RECORD", "x.py,,\\n"); w.close()'
)

# Each is run in a project with the file "file", and must succeed; before the colon, the programs that it needs.
EVERYDAY = {
    "git init, add and commit": ("git", "git init -q . && git add -A && git commit -qm one && git log --oneline"),
    "git checkout of a branch": ("git", REPOSITORY + "git checkout -qb other && git checkout -q main"),
    "git stash": ("git", REPOSITORY + "echo 2 >> file && git stash && git stash pop"),
    "git worktree in the project": ("git", REPOSITORY + "git worktree add -q sub/tree && git -C sub/tree status"),
    "git merge and rebase": (
        "git",
        REPOSITORY + "git checkout -qb b && echo b > b && git add b && git commit -qm b && git checkout -q main && "
        "echo c > c && git add c && git commit -qm c && git merge -q --no-edit b && git rebase -q b",
    ),
    "git clone inside": ("git", REPOSITORY + "git clone -q . copy && git -C copy gc -q"),
    "git config of the repository": ("git", REPOSITORY + "git config user.name me && git tag v1 && git diff HEAD"),
    "make": ("make cc", "printf 'all: out\\nout: file\\n\\tcp file out\\n' > Makefile && make && test -f out"),
    "gcc": ("gcc", "echo 'int main(){return 0;}' > a.c && gcc -O2 -o a a.c && ./a"),
    "python -m venv and pip install of a local package": (
        "python3",
        f"python3 -c '{WHEEL}' && python3 -m venv v && v/bin/pip install -q --no-index ./x-1-py3-none-any.whl && "
        "v/bin/python -c 'import x'",
    ),
    "python writes byte code": ("python3", "echo 'x = 1' > m.py && python3 -c 'import m' && test -d __pycache__"),
    "python temporary files": ("python3", "python3 -c 'import tempfile; tempfile.NamedTemporaryFile().write(b\"x\")'"),
    "python multiprocessing": (
        "python3",
        "python3 -c 'import multiprocessing as m; p = m.Pool(2); print(p.map(abs, [-1, 2])); m.Lock()'",
    ),
    "unittest run": (
        "python3",
        "printf 'import unittest\\nclass T(unittest.TestCase):\\n  def test(self): pass\\n' > test_a.py && "
        "python3 -m unittest -q",
    ),
    "pytest run": ("", 'echo \'def test(tmp_path): (tmp_path / "a").write_text("")\' > test_b.py && $PYTEST -q .'),
    "node": ("node", 'node -e \'require("fs").writeFileSync("n", "1")\' && test -f n'),
    "npm init and pack": ("npm", "npm init -y > /dev/null && npm pack --silent"),
    "npm install of a local package": (
        "npm",
        "mkdir dep && (cd dep && npm init -y > /dev/null) && npm init -y > /dev/null && "
        "npm install --offline --no-audit --no-fund ./dep",
    ),
    "cargo build": (
        "cargo",
        "cargo init -q --name x --vcs none . && cargo build -q --offline && target/debug/x",
    ),
    "go build": ("go", "go mod init x && printf 'package main\\nfunc main(){}' > m.go && go build -o x . && ./x"),
    "sqlite3": ("sqlite3", "sqlite3 a.db 'create table t(x); insert into t values(1); select * from t'"),
    "tar": ("tar", "tar czf $TMPDIR/a.tgz file && mkdir t && tar xzf $TMPDIR/a.tgz -C t"),
    "zip": ("zip unzip", "zip -q a.zip file && unzip -qo a.zip -d z"),
    "find with -exec and -delete": ("", "touch a.o b.o && find . -name '*.o' -exec touch {} + -delete"),
    "sed -i": ("", "sed -i s/inside/changed/ file && grep changed file"),
    "perl -pi": ("perl", "perl -pi -e s/inside/changed/ file && grep changed file"),
    "mktemp": ("", "f=$(mktemp) && echo x > $f && d=$(mktemp -d) && mv $f $d/ && cp $d/* . && rm -r $d"),
    "sort of much input": ("", "seq 1 100000 | sort -r -S 200K | sort -n -S 200K | tail -1 | grep 100000"),
    "cp -a, mv and rm -r": ("", "mkdir -p a/b && touch a/b/c && cp -a a d && mv d e && rm -r a && test -f e/b/c"),
    "moving between directories": ("", "mkdir a b && touch a/f && mv a/f b/ && ln b/f a/g && mv a $TMPDIR/"),
    "ln -s": ("", "ln -s file link && cat link && rm link"),
    "chmod and touch": ("", "chmod +x file && touch -d 2020-01-01 file && chmod 600 file"),
    "truncate and dd": ("", "truncate -s 10 t && dd if=/dev/zero of=t bs=1 count=5 conv=notrunc"),
    "flock": ("flock", "flock lock -c 'echo locked'"),
    "nohup": ("nohup", "nohup true > n.log 2>&1; cat n.log"),
    "a background process and wait": ("", "sleep 0.01 > b.log & wait $! && cat b.log"),
    "here-documents and here-strings": ("", "cat > h <<'END'\na\nEND\ngrep a <<< $(cat h)"),
    "process substitution": ("", "diff <(echo a) <(echo a) && echo x > >(cat > t) && wait $! && cat t"),
    "a large here-document": ("", "x=$(seq 1 60000); cat <<END | tail -1\n$x\nEND"),
    "named pipes and unix sockets": (
        "python3",
        "mkfifo p && (echo x > p &) && cat p && "
        "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen()'",
    ),
    "ps": ("ps", "ps aux > ps.out && test -s ps.out"),
    "kill of a child": ("", "sleep 100 & kill $!; wait $!; test $? -eq 143"),
    "devices": ("", "echo x > /dev/null && head -c 3 /dev/urandom | wc -c && head -c 1 /dev/zero | wc -c"),
    "shared memory": ("", "echo x > /dev/shm/turnkeeper-$$ && rm /dev/shm/turnkeeper-$$"),
    "a terminal of its own": ("script", "script -qec 'stty size; tty' /dev/null"),
    "reading the system and the home": ("", "cat /etc/passwd > /dev/null && ls $HOME && cat $HOME/.bashrc"),
    "caches of the user": ("", "mkdir -p ~/.cache/tool && echo x > ~/.cache/tool/x && mv ~/.cache/tool/x ."),
    "ssh -V": ("ssh", "ssh -V"),
    "ripgrep-like search": ("", "grep -rn inside . && xargs -n1 echo < file"),
    "curl to a server of its own": (
        "curl python3",
        'python3 -c \'import http.server as h; s = h.HTTPServer(("127.0.0.1", 0), h.SimpleHTTPRequestHandler); '
        'open("port", "w").write(str(s.server_port)); s.handle_request()\' & '
        "until test -s port; do :; done; curl -s http://127.0.0.1:$(cat port)/file | grep inside && wait",
    ),
}


@pytest.mark.parametrize("name", EVERYDAY)
async def test_an_everyday_command_succeeds_in_the_workspace(tmp_path: Path, name: str) -> None:
    world = ConfinedWorld(tmp_path)
    programs, command = EVERYDAY[name]
    needs(*programs.split())
    before = world.outside_files()
    pytest_here = f"{sys.executable} -m pytest -p no:cacheprovider"
    ran = await world.run(f"set -o pipefail; {command.replace('$PYTEST', pytest_here)}")
    assert ran.exit_code == 0, ran.output
    assert world.outside_files() == before


# Programs, and what a program reads when it starts: run outside, sooner or later.
RUN_OUTSIDE = """
.local/bin/x .cargo/bin/x .cargo/config.toml go/bin/x .rustup/toolchains/stable/bin/cargo .rustup/settings.toml
.local/share/pnpm/x .local/share/pnpm/global/5/x .yarn/bin/x .yarnrc.yml .bun/bin/x
.local/share/uv/tools/x/bin/x .local/share/uv/python/x/bin/python .local/share/virtualenvs/x/bin/python
.local/share/hatch/env/x/bin/python .local/share/pdm/venvs/x/bin/python
.ipython/profile_default/startup/x.py .ipython/profile_default/ipython_config.py .matplotlib/matplotlibrc
.gradle/init.d/x.gradle .gradle/gradle.properties .m2/settings.xml .m2/extensions.xml .sbt/1.0/plugins/x.sbt
.nuget/NuGet/NuGet.Config .nuget/plugins/x .gem/bin/x .gem/credentials .bundle/config .composer/vendor/bin/x
.cabal/bin/x .cabal/config .stack/config.yaml .stack/programs/x .hex/hex.config .mix/escripts/x .mix/archives/x/x
.conan2/extensions/hooks/hook_x.py .ccache/ccache.conf .pub-cache/bin/x .pub-cache/global_packages/x
.terraform.d/plugins/x .npmrc .config/pip/pip.conf
"""
CACHED = """
.cache/x .npm/_cacache/x .yarn/berry/cache/x .local/share/pnpm/store/x .cargo/registry/x go/pkg/mod/x .gradle/caches/x
.gradle/daemon/x .gradle/native/x .gradle/wrapper/x .m2/repository/x .ivy2/cache/x .nuget/packages/x .hex/packages/x
.conan2/p/x .ccache/a/x .pub-cache/hosted/x .bundle/cache/x .stack/pantry/x
"""


async def test_caches_are_writable_and_nothing_beside_them_that_is_run_outside(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path)
    files = {name: world.home / name for name in f"{RUN_OUTSIDE}{CACHED}".split()}
    for file in files.values():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("old")
    names = " ".join(files)
    await world.run(f'for name in {names}; do echo new > ~/$name; touch "$(dirname ~/$name)/beside"; done; true')
    changed = {name for name, file in files.items() if file.read_text() != "old"}
    beside = {name for name, file in files.items() if file.with_name("beside").exists()}
    assert changed == beside == set(CACHED.split())


# $OUT is a directory outside, ~ the home. Each tries to change something there.
HOSTILE = (
    # Redirections.
    "echo x > $OUT/file",
    "echo x >> $OUT/file",
    "echo x >| $OUT/new",
    ": > $OUT/file",
    "echo x 1<> $OUT/file",
    "exec 3> $OUT/new; echo x >&3",
    "cat > $OUT/file <<< x",
    "cd $OUT && echo x > file",
    "(cd .. && echo x > outside/file)",
    "echo x > ../outside/../outside/new",
    "eval 'echo x > '$OUT/file",
    "bash -c 'echo x > $OUT/file'",
    'env -i bash -c "echo x > $OUT/file"',
    "$(echo ZWNobyB4ID4gJE9VVC9maWxl | base64 -d | sed s/^/eval\\ /)",
    "echo 'echo x > $OUT/file' | sh",
    "xargs -I{} sh -c 'echo x > {}' <<< $OUT/file",
    "find . -maxdepth 0 -exec sh -c 'echo x > $OUT/file' \\;",
    # Programs that write.
    "tee $OUT/file < file",
    "dd if=file of=$OUT/file",
    "cp file $OUT/file",
    "cp --target-directory=$OUT file",
    "install -m 644 file $OUT/new",
    "mv file $OUT/",
    "mv $OUT/file .",
    "rm -f $OUT/file",
    "rm -rf $OUT/folder",
    "rmdir $OUT/folder; unlink $OUT/folder/inner",
    "mkdir $OUT/made",
    "touch $OUT/new",
    "truncate -s 0 $OUT/file",
    "sed -i s/old/new/ $OUT/file",
    "perl -pi -e s/old/new/ $OUT/file",
    'perl -e \'open(F, ">", "$ENV{OUT}/file"); print F "x"\'',
    'python3 -c \'import os; open(os.environ["OUT"] + "/file", "w").write("x")\'',
    'python3 -c \'import os; os.truncate(os.environ["OUT"] + "/file", 0)\'',
    'python3 -c \'import os; os.rename(os.environ["OUT"] + "/file", os.environ["OUT"] + "/moved")\'',
    'python3 -c \'import os; os.mkfifo(os.environ["OUT"] + "/pipe")\'',
    'python3 -c \'import socket, os; socket.socket(socket.AF_UNIX).bind(os.environ["OUT"] + "/socket")\'',
    'node -e \'require("fs").writeFileSync(process.env.OUT + "/file", "x")\'',
    'awk \'BEGIN { print "x" > ENVIRON["OUT"] "/file" }\'',
    "tar cf - file | tar xf - -C $OUT",
    "tar cf $OUT/a.tar file",
    "zip -q $OUT/a.zip file",
    "split -b 2 file $OUT/part",
    "patch $OUT/file <<< $'1c1\\n< old\\n---\\n> new'",
    "git init -q $OUT/repo",
    "git init -q . && git add -A && git commit -qm x && git -C $OUT init && git worktree add $OUT/tree",
    "git init -q . && git config --file $OUT/file a.b c",
    "sqlite3 $OUT/a.db 'create table t(x)'",
    "gcc -x c -o $OUT/a - <<< 'int main(){}'",
    "mknod $OUT/null c 1 3",
    "rsync -a file $OUT/ || scp -q file $OUT/copy",
    "curl -so $OUT/new file://$PWD/file",
    # Links and directories that are swapped.
    "ln -s $OUT/file link && echo x > link",
    "ln -s $OUT link && echo x > link/file",
    "ln -s $OUT link && rm -rf link/*",
    "ln $OUT/file hard && echo x > hard",
    "ln file $OUT/hard",
    "ln -sfn $OUT d; ln -s d/file e; sed -i --follow-symlinks s/old/new/ e",
    "mkdir d && cd d && rmdir ../d && echo x > ../../outside/file",
    'python3 -c \'import os; d = os.open(os.environ["OUT"], 0); os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=d)\'',
    "mv $OUT/folder here",
    'python3 -c \'import os; os.link(os.environ["OUT"] + "/file", "h"); open("h", "w").write("x")\'',
    "mkdir d && (for i in {1..500}; do ln -sfn $OUT d/l; rm -f d/l; mkdir d/l; rmdir d/l; done) 2>/dev/null & "
    "for i in $(seq 300); do echo x > d/l/file; done 2>/dev/null; kill $!",
    # The process file system, namespaces and other processes.
    "exec 3< $OUT/file; echo x > /proc/self/fd/3",
    "exec 3< $OUT; echo x > /proc/self/fd/3/file",
    "exec 3< $OUT/file; python3 -c 'import os; os.truncate(\"/proc/self/fd/3\", 0)'",
    "echo x > /proc/self/root/$OUT/file",
    "cd $OUT; echo x > /proc/self/cwd/file",
    "echo x > /proc/$PPID/root$OUT/file",
    "echo x > /proc/$PPID/cwd/../outside/file",
    "for p in /proc/[0-9]*; do echo x > $p/root$OUT/file; done 2>/dev/null",
    "unshare -r sh -c 'echo x > $OUT/file'",
    "unshare -rm sh -c 'mount --bind . $OUT && echo x > $OUT/file'",
    "mount --bind . $OUT && touch $OUT/new",
    "mount -t tmpfs none $OUT && touch $OUT/new",
    "chroot $OUT /bin/sh -c 'echo x > /file'",
    "sudo -n sh -c 'echo x > $OUT/file' || su -c 'echo x > $OUT/file' < /dev/null",
    'nsenter -t $PPID -m sh -c "echo x > $OUT/file"',
    "setsid sh -c 'echo x > $OUT/file'",
    "nohup sh -c 'echo x > $OUT/file' > /dev/null 2>&1 & wait",
    "(sleep 0; echo x > $OUT/file) & disown; wait",
    "trap 'echo x > $OUT/file' EXIT",
    "python3 -c 'import ctypes; l = ctypes.CDLL(None); l.system(b\"echo x > $OUT/file\")'",
    "echo 'echo x > $OUT/file' | at now",
    "echo '* * * * * touch /x' | crontab -",
    # The home: what a shell or another program would run later.
    "echo 'echo x' >> ~/.bashrc",
    "echo x > ~/.profile",
    "cp file ~/.bashrc",
    "echo key >> ~/.ssh/authorized_keys",
    "mkdir -p ~/.config/autostart && touch ~/.config/autostart/a.desktop",
    "mkdir -p ~/.local/bin && cp file ~/.local/bin/ls",
    "mkdir -p ~/.local/lib/python3.12/site-packages",
    "git config --global core.hooksPath $PWD",
    "mkdir -p ~/.cargo/bin && cp file ~/.cargo/bin/cargo",
    "mkdir -p ~/go/bin && cp file ~/go/bin/x",
    "mv ~/.cache ~/.other",
    "rm -rf ~",
    "mv ~/.ssh .",
    # This program's own files.
    'echo \'{"sandbox": "off"}\' > ~/.config/turnkeeper/turnkeeper.json',
    "touch ~/.config/turnkeeper/new.json",
    "mv ~/.config/turnkeeper ~/.cache/",
    "echo '{}' > ~/.local/share/turnkeeper/auth.json",
    "cp file ~/.local/share/turnkeeper/new",
    "rm -rf ~/.local/share/turnkeeper",
    "ln ~/.local/share/turnkeeper/auth.json hard && echo x > hard",
)


@pytest.mark.parametrize("command", HOSTILE)
async def test_a_hostile_command_changes_nothing_outside_though_all_rules_allow_it(
    tmp_path: Path, command: str
) -> None:
    world = ConfinedWorld(tmp_path)
    before = world.outside_files()
    await world.run(command)
    assert world.outside_files() == before


@pytest.mark.parametrize("command", [*HOSTILE, "echo x > file", "chmod 777 file $OUT/file", "mktemp", "rm -r ."])
async def test_a_hostile_command_changes_nothing_at_all_in_read_only_mode(tmp_path: Path, command: str) -> None:
    world = ConfinedWorld(tmp_path, SandboxConfig(mode="read-only"))
    before = world.all_files()
    await world.run(command)
    assert world.all_files() == before


async def test_shared_memory_is_not_writable_in_read_only_mode(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path, SandboxConfig(mode="read-only"))
    name = f"/dev/shm/turnkeeper-{tmp_path.name}"
    ran = await world.run(f"echo x > {name} && rm {name}; echo x > /dev/null && echo still a device")
    assert "Permission denied" in ran.output
    assert "still a device" in ran.output


def test_the_corpora_are_as_large_as_they_should_be() -> None:
    assert len(EVERYDAY) >= 40
    assert len(HOSTILE) >= 60


@pytest.mark.parametrize("command", ["cat ~/.local/share/turnkeeper/auth.json", "cp ~/.local/share/turnkeeper/* ."])
async def test_no_command_reads_the_keys_of_this_program(tmp_path: Path, command: str) -> None:
    ran = await ConfinedWorld(tmp_path).run(f"{command}; cat *")
    assert "secret" not in ran.output
    assert "Permission denied" in ran.output


@pytest.mark.parametrize(
    ("command", "succeeds"),
    [
        ("cat $OUT/file", False),
        ("ls $OUT", False),
        ("cat ~/.bashrc", False),
        ('python3 -c \'print(open(__import__("os").environ["OUT"] + "/file").read())\'', False),
        ("cp $OUT/file .", False),
        ("ln -s $OUT/file l && cat l", False),
        ("cat file && ls /usr && python3 -c 'print(1)' && cat /etc/passwd", True),
        ("git init -q . && git add -A && git commit -qm x", True),
        ("f=$(mktemp) && echo x > $f && cat $f", True),
    ],
)
async def test_a_denied_outside_cannot_be_read(tmp_path: Path, command: str, succeeds: bool) -> None:
    world = ConfinedWorld(tmp_path)
    world.rules.append(Rule(permission="external_directory", pattern="*", action="deny"))
    ran = await world.run(command)
    assert (ran.exit_code == 0) is succeeds, ran.output
    assert "old" not in ran.output


async def test_one_denied_directory_cannot_be_read_and_its_neighbours_can(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path)
    world.rules.append(Rule(permission="external_directory", pattern=f"{world.outside}/folder/*", action="deny"))
    assert (await world.run("cat $OUT/file")).output == "old\n"
    assert (await world.run("cat $OUT/folder/inner")).exit_code == 1


async def test_what_the_user_approved_can_be_written_and_its_neighbours_cannot(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path)
    world.approvals.append(Rule(permission="external_directory", pattern=f"{world.outside}/folder/*", action="allow"))
    assert (await world.run("echo x > $OUT/folder/new")).exit_code == 0
    assert (await world.run("echo x > $OUT/new")).exit_code == 1


async def test_configured_paths_can_be_written(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path, SandboxConfig(write=("~/notes", str(tmp_path / "outside/folder"))))
    (world.home / "notes").mkdir()
    ran = await world.run("echo x > ~/notes/a && echo x > $OUT/folder/inner && echo x > $OUT/file")
    assert "file: Permission denied" in ran.output
    assert (world.home / "notes/a").read_text() == (world.outside / "folder/inner").read_text() == "x\n"


@pytest.mark.parametrize(
    "command",
    [
        "exec 3<> /dev/tcp/127.0.0.1/$PORT",
        "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)'",
        "python3 -c 'import socket; socket.socket(socket.AF_INET6)'",
        "python3 -c 'import socket; socket.socket(socket.AF_INET).bind((\"127.0.0.1\", 0))'",
    ],
)
async def test_without_a_network_there_is_no_socket_of_it(tmp_path: Path, command: str) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        given = command.replace("$PORT", str(server.getsockname()[1]))
        assert (await ConfinedWorld(tmp_path / "on").run(given)).exit_code == 0
        assert (await ConfinedWorld(tmp_path / "off", SandboxConfig(network=False)).run(given)).exit_code == 1


async def test_without_a_network_processes_still_talk_to_each_other(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path, SandboxConfig(network=False))
    ran = await world.run(
        "python3 -c 'import socket; socket.socketpair(); socket.socket(socket.AF_UNIX)'; echo a | cat"
    )
    assert (ran.exit_code, ran.output) == (0, "a\n")
