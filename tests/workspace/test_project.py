"""Project identity, on real repositories: one id per repository, kept for ever, shared by its worktrees."""

import os
import select
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from turnkeeper.model.identifier import ProjectID
from turnkeeper.workspace import git
from turnkeeper.workspace.project import GLOBAL, ProjectPlace, identify, normalise_remote, remote_id

REMOTE = "git@github.com:Foo/Bar.git"
REMOTE_ID = "97c1d40db7d2a370dc4fbc2b4e99e4347980c7c2"

WHO = ["-c", "user.name=Ada", "-c", "user.email=ada@example.invalid", "-c", "commit.gpgsign=false"]


class World:
    """A directory to make repositories in, with a git that reads no configuration but theirs."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GIT_CONFIG_GLOBAL": str(home / "none"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
            "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
        }

    def git(self, directory: Path, *arguments: str) -> str:
        command = ["git", *WHO, *arguments]
        done = subprocess.run(command, cwd=directory, env=self.environ, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def repository(self, name: str, *, remote: str | None = None, commit: bool = True) -> Path:
        directory = self.home / name
        directory.mkdir(parents=True)
        self.git(directory, "init", "-q", "-b", "main")
        if remote is not None:
            self.git(directory, "remote", "add", "origin", remote)
        if commit:
            self.commit(directory, name)
        return directory

    def commit(self, directory: Path, message: str) -> str:
        self.git(directory, "commit", "-q", "--allow-empty", "-m", message)
        return self.git(directory, "rev-parse", "HEAD")

    async def identify(self, directory: Path | str, **options: Any) -> ProjectPlace:
        return await identify(directory, environ=self.environ, **options)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path.resolve())


async def test_a_repository_is_known_by_its_root_commit(world: World) -> None:
    top = world.repository("repo")
    root = world.git(top, "rev-parse", "HEAD")
    world.commit(top, "second")
    assert await world.identify(top) == ProjectPlace(
        id=ProjectID(root), directory=top, worktree=top, main_worktree=top, vcs="git", path=""
    )


async def test_a_subdirectory_belongs_to_the_repository_around_it(world: World) -> None:
    top = world.repository("repo")
    inside = top / "src" / "deep"
    inside.mkdir(parents=True)
    place, around = await world.identify(inside), await world.identify(top)
    assert (place.id, place.directory, place.worktree, place.path) == (around.id, inside, top, "src/deep")


async def test_the_nearest_repository_counts(world: World) -> None:
    world.repository("outer")
    inner = world.repository("outer/inner")
    assert (await world.identify(inner)).worktree == inner


async def test_of_several_root_commits_the_first_by_name_is_the_id(world: World) -> None:
    top = world.repository("repo")
    first = world.git(top, "rev-parse", "HEAD")
    world.git(top, "checkout", "-q", "--orphan", "other")
    second = world.commit(top, "unrelated")
    world.git(top, "merge", "-q", "--allow-unrelated-histories", "-m", "both", "main")
    assert (await world.identify(top)).id == min(first, second)


async def test_a_linked_worktree_shares_the_project_and_has_its_own_top(world: World) -> None:
    top = world.repository("repo")
    linked = world.home / "linked"
    world.git(top, "worktree", "add", "-q", str(linked))
    place = await world.identify(linked)
    assert place.id == (await world.identify(top)).id
    assert (place.worktree, place.main_worktree, place.path) == (linked, top, "")


async def test_a_worktree_on_an_unrelated_branch_still_shares_the_project(world: World) -> None:
    top = world.repository("repo")
    project = (await world.identify(top)).id
    linked = world.home / "pages"
    world.git(top, "worktree", "add", "-q", "--detach", str(linked))
    world.git(linked, "checkout", "-q", "--orphan", "pages")
    world.commit(linked, "a history of its own")
    assert (await world.identify(linked)).id == project


async def test_a_git_directory_kept_elsewhere_does_not_move_the_worktree(world: World) -> None:
    top = world.home / "repo"
    (world.home / "kept").mkdir()
    world.git(world.home, "init", "-q", f"--separate-git-dir={world.home / 'kept' / '.git'}", str(top))
    root = world.commit(top, "first")
    place = await world.identify(top)
    assert (place.id, place.worktree, place.main_worktree) == (root, top, top)


async def test_worktrees_of_a_bare_repository_share_the_project(world: World) -> None:
    source = world.repository("source")
    home = world.home / "home"
    world.git(world.home, "clone", "-q", "--bare", str(source), str(home / ".bare"))
    (home / ".git").write_text("gitdir: ./.bare\n")
    world.git(home, "worktree", "add", "-q", str(home / "work"), "main")
    work, bare = await world.identify(home / "work"), await world.identify(home)
    assert (work.id, work.worktree, work.main_worktree) == (bare.id, home / "work", home / ".bare")
    assert (bare.worktree, bare.vcs) == (home, "git")


async def test_a_repository_without_a_commit_is_global_but_has_git(world: World) -> None:
    top = world.repository("repo", commit=False)
    assert await world.identify(top) == ProjectPlace(
        id=GLOBAL, directory=top, worktree=top, main_worktree=top, vcs="git", path=""
    )


async def test_the_first_commit_gives_a_repository_its_project(world: World) -> None:
    top = world.repository("repo", commit=False)
    await world.identify(top)
    root = world.commit(top, "first")
    assert (await world.identify(top)).id == root


async def test_a_directory_without_git_is_global(world: World) -> None:
    root = Path(world.home.anchor)
    assert await world.identify(world.home) == ProjectPlace(
        id=GLOBAL,
        directory=world.home,
        worktree=root,
        main_worktree=root,
        vcs=None,
        path=world.home.relative_to(root).as_posix(),
    )


async def test_a_directory_without_git_can_pretend_to_have_it(world: World) -> None:
    world.environ["OPENCODE_FAKE_VCS"] = "git"
    place = await world.identify(world.home)
    assert (place.id, place.vcs) == (GLOBAL, "git")


async def test_a_repository_that_git_cannot_read_is_a_plain_directory(world: World) -> None:
    top = world.home / "broken"
    top.mkdir()
    (top / ".git").write_text("gitdir: nowhere\n")
    assert (await world.identify(top)).vcs is None


async def test_a_repository_that_git_can_read_again_is_found(world: World) -> None:
    top, whole = world.home / "mended", world.repository("whole")
    top.mkdir()
    (top / ".git").write_text("gitdir: nowhere\n")
    assert (await world.identify(top)).vcs is None
    (top / ".git").write_text(f"gitdir: {whole / '.git'}\n")
    assert (await world.identify(top)).vcs == "git"


async def test_without_a_git_program_a_repository_is_a_plain_directory(world: World) -> None:
    top = world.repository("repo")
    place = await identify(top, environ=world.environ | {"PATH": str(world.home)})
    assert (place.id, place.vcs) == (GLOBAL, None)


async def test_a_git_that_does_not_answer_is_left_behind(world: World) -> None:
    top = world.repository("repo")
    programs = world.home / "bin"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    (programs / "git").chmod(0o755)
    place = await identify(top, environ=world.environ | {"PATH": f"{programs}:/bin:/usr/bin"}, timeout_s=0.05)
    assert (place.id, place.vcs) == (GLOBAL, None)


async def test_variables_of_another_repository_do_not_mislead(world: World) -> None:
    top, other = world.repository("repo"), world.repository("other")
    place = await identify(top, environ=world.environ | {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other)})
    assert (place.id, place.worktree) == (world.git(top, "rev-parse", "HEAD"), top)


async def test_a_directory_reached_through_a_link_is_the_same_place(world: World) -> None:
    top = world.repository("repo")
    link = world.home / "link"
    link.symlink_to(top)
    assert await world.identify(link) == await world.identify(top)


async def test_a_line_break_in_a_directory_name_is_no_trouble(world: World) -> None:
    top = world.repository("two\nlines")
    assert (await world.identify(top)).worktree == top


async def test_an_id_that_opencode_remembered_is_kept(world: World) -> None:
    top = world.repository("repo")
    (top / ".git" / "opencode").write_text("0123abc\n")
    place = await world.identify(top)
    assert place.id == "0123abc"
    assert (top / ".git" / "opencode").read_text() == "0123abc\n"


async def test_what_opencode_remembers_later_is_an_alias_and_changes_nothing(world: World) -> None:
    top = world.repository("repo")
    project = (await world.identify(top)).id
    (top / ".git" / "opencode").write_text("later")
    (top / "sub").mkdir()
    place = await world.identify(top / "sub")
    assert (place.id, place.aliases) == (project, ("later",))
    assert (top / ".git" / "turnkeeper").read_text() == project


async def test_a_remembered_id_is_never_replaced(world: World) -> None:
    top = world.repository("repo")
    (top / ".git" / "turnkeeper").write_text("mine")
    assert (await world.identify(top, strategy="opencode")).id == world.git(top, "rev-parse", "HEAD")
    assert (await world.identify(top)).id == "mine"
    assert (top / ".git" / "turnkeeper").read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"../../etc", b"a b", b"x" * 65, b"\xff\xfe", b"global"])
async def test_what_cannot_be_an_id_is_not_remembered(world: World, content: bytes) -> None:
    top = world.repository("repo")
    (top / ".git" / "opencode").write_bytes(content)
    assert (await world.identify(top)).id == world.git(top, "rev-parse", "HEAD")


async def test_a_file_under_our_name_that_holds_no_id_is_left_alone(world: World) -> None:
    top = world.repository("repo")
    (top / ".git" / "turnkeeper").write_text("notes, not an id")
    assert (await world.identify(top)).id == world.git(top, "rev-parse", "HEAD")
    assert (top / ".git" / "turnkeeper").read_text() == "notes, not an id"


async def test_a_repository_that_cannot_be_written_is_a_project_all_the_same(world: World) -> None:
    top = world.repository("repo")
    # A directory in the place of the file we write first: that stops every user, root included.
    (top / ".git" / f"turnkeeper.{os.getpid()}").mkdir()
    assert (await world.identify(top)).id == world.git(top, "rev-parse", "HEAD")
    assert not (top / ".git" / "turnkeeper").exists()


async def test_identifying_leaves_nothing_in_the_working_tree(world: World) -> None:
    top = world.repository("repo")
    await world.identify(top)
    assert world.git(top, "status", "--porcelain") == ""
    assert [each.name for each in (top / ".git").glob("turnkeeper*")] == ["turnkeeper"]


async def test_the_opencode_strategy_asks_the_remote_first(world: World) -> None:
    top = world.repository("repo", remote=REMOTE)
    (top / ".git" / "opencode").write_text("older")
    place = await world.identify(top, strategy="opencode")
    assert (place.id, place.aliases) == (REMOTE_ID, ("older",))
    assert not (top / ".git" / "turnkeeper").exists()


async def test_the_opencode_strategy_knows_a_repository_without_a_commit_by_its_remote(world: World) -> None:
    top = world.repository("repo", remote=REMOTE, commit=False)
    assert (await world.identify(top, strategy="opencode")).id == REMOTE_ID


async def test_the_opencode_strategy_falls_back_to_memory_and_then_to_the_root_commit(world: World) -> None:
    top = world.repository("repo", remote=str(world.home))
    (top / "sub").mkdir()
    root = world.git(top, "rev-parse", "HEAD")
    assert (await world.identify(top, strategy="opencode")).id == root
    (top / ".git" / "opencode").write_text("cached")
    assert (await world.identify(top / "sub", strategy="opencode")).id == "cached"


async def test_every_id_a_repository_ever_had_can_be_asked_for(world: World) -> None:
    top = world.repository("repo", remote=REMOTE)
    head = world.git(top, "rev-parse", "HEAD")
    (top / ".git" / "opencode").write_text("cached")
    world.git(top, "checkout", "-q", "--orphan", "other")
    roots = [head]
    # A root whose name sorts before the other's, for --all to name another commit than HEAD does.
    while min(roots) == head:
        roots.append(world.commit(top, f"unrelated {len(roots)}"))
        world.git(top, "checkout", "-q", "--orphan", f"other-{len(roots)}")
        world.git(top, "branch", f"keep-{len(roots)}", roots[-1])
    world.git(top, "checkout", "-q", "main")
    place = await world.identify(top, every_alias=True)
    assert (place.id, place.aliases) == ("cached", (head, REMOTE_ID, min(roots)))


async def test_a_repository_that_comes_to_be_around_a_known_directory_is_found(world: World) -> None:
    inside = world.home / "later" / "src"
    inside.mkdir(parents=True)
    before = await world.identify(inside)
    assert (before.id, await world.identify(str(inside))) == (GLOBAL, before)
    world.git(inside.parent, "init", "-q", "-b", "main")
    assert (await world.identify(inside)).vcs == "git"
    root = world.commit(inside.parent, "first")
    assert (await world.identify(inside)).id == root


async def test_a_link_that_comes_to_lead_elsewhere_is_another_place(world: World) -> None:
    one, other = world.home / "one", world.repository("other")
    one.mkdir()
    link = world.home / "link"
    link.symlink_to(one)
    assert (await world.identify(link)).directory == one
    link.unlink()
    link.symlink_to(other)
    assert (await world.identify(link)).directory == other
    link.unlink()
    link.symlink_to(one)
    assert (await world.identify(link)).directory == one


async def test_a_directory_that_is_not_there_yet_has_a_place_too(world: World) -> None:
    later = world.home / "later"
    assert (await world.identify(later)).directory == later
    later.symlink_to(world.repository("repo"))
    assert (await world.identify(later)).directory == world.home / "repo"


async def test_a_link_to_what_is_not_there_yet_may_come_to_lead_elsewhere(world: World) -> None:
    link = world.home / "link"
    for name in ("one", "other"):
        link.symlink_to(world.home / name)
        assert (await world.identify(link)).directory == world.home / name
        link.unlink()


async def test_git_is_asked_once_for_a_repository_and_its_linked_worktrees(world: World) -> None:
    top, linked = world.repository("repo"), world.home / "linked"
    world.git(top, "worktree", "add", "-q", "--detach", str(linked))
    places = [await world.identify(directory) for directory in (top, linked)]
    without_git = world.environ | {"PATH": str(world.home)}
    assert [await identify(directory, environ=without_git) for directory in (top, linked)] == places


async def test_a_submodule_is_a_project_of_its_own_with_and_without_asking_git(world: World) -> None:
    module, top = world.repository("module"), world.repository("repo")
    world.git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(module), "inner")
    asked = await world.identify(top / "inner")
    assert (asked.worktree, asked.main_worktree) == (top / "inner", top / "inner")
    assert await world.identify(top / "inner") == asked


async def test_a_repository_that_is_removed_or_replaced_is_seen_at_once(world: World) -> None:
    top = world.repository("repo")
    first = await world.identify(top)
    (top / ".git").rename(world.home / "away")
    gone = await world.identify(top)
    world.git(top, "init", "-q", "-b", "main")
    root = world.commit(top, "another repository")
    assert (first.vcs, gone.vcs, gone.id) == ("git", None, GLOBAL)
    assert (await world.identify(top)).id == root != first.id


async def test_no_program_that_a_repository_names_is_run(world: World) -> None:
    top, mark = world.repository("repo"), world.home / "ran"
    program = world.home / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    (top / "file").write_text("x")
    world.git(top, "config", "core.fsmonitor", str(program))
    world.git(top, "config", "core.hooksPath", str(world.home))
    assert await git.listed(top, world.environ) == ["file"]
    assert (await world.identify(top)).vcs == "git"
    assert not mark.exists()


async def test_places_asked_for_at_the_same_time_agree(world: World) -> None:
    top = world.repository("repo")
    for name in "abcd":
        (top / name).mkdir()
    found: list[ProjectPlace] = []

    async def ask(name: str) -> None:
        found.append(await world.identify(top / name))

    async with anyio.create_task_group() as tasks:
        for name in "abcd":
            tasks.start_soon(ask, name)
    assert {place.id for place in found} == {world.git(top, "rev-parse", "HEAD")}


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:Foo/Bar.git",
        "github.com:Foo/Bar",
        "git@GitHub.com:/Foo/Bar.git/",
        "https://github.com/Foo/Bar.git",
        "https://user:secret@GITHUB.com:8443/Foo/Bar",
        "ssh://git@github.com:22/Foo/Bar.git",
        "git://github.com//Foo/Bar///",
        "  https://github.com/Foo/Bar.git/\n",
    ],
)
def test_a_remote_is_the_same_however_it_is_written(url: str) -> None:
    assert normalise_remote(url) == "github.com/Foo/Bar"
    assert remote_id(url) == REMOTE_ID


@pytest.mark.parametrize(
    ("url", "normalised"),
    [
        ("https://example.org/a/b.git.git", "example.org/a/b.git"),
        ("ssh://git@example.org/~ada/x.git", "example.org/~ada/x"),
        ("https://github.com/foo/bar", "github.com/foo/bar"),
    ],
)
def test_a_remote_keeps_the_rest_of_its_path(url: str, normalised: str) -> None:
    assert normalise_remote(url) == normalised


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/srv/repo.git",
        "../repo",
        "./a:b",
        "file:///srv/repo.git",
        "file:/srv",
        "C:/code/repo",
        "C:\\code",
        "https://",
        "https://example.org",
        "https://example.org/.git",
        "https://[broken/x",
    ],
)
def test_a_local_or_unreadable_remote_gives_no_id(url: str) -> None:
    assert normalise_remote(url) is None
    assert remote_id(url) is None


@pytest.mark.parametrize("name", [".git/HEAD", ".git/config", ".git/turnkeeper", ".git"])
async def test_a_pipe_in_a_repository_is_not_waited_for(world: World, name: str) -> None:
    top = world.repository("repo")
    if name == ".git":
        (top / name).rename(world.home / "elsewhere")
    (top / name).unlink(missing_ok=True)
    os.mkfifo(top / name)
    with anyio.fail_after(60):
        place = await world.identify(top, timeout_s=3600)
    assert place.vcs == ("git" if name == ".git/turnkeeper" else None)


async def test_a_git_whose_caller_is_cancelled_is_ended(world: World) -> None:
    top, programs, begun = world.repository("repo"), world.home / "bin", world.home / "begun"
    programs.mkdir()
    held = world.home / "held"
    os.mkfifo(begun)
    os.mkfifo(held)
    (programs / "git").write_text(f"#!/bin/sh\nexec 3> {held}\necho on > {begun}\nexec tail -f /dev/null\n")
    (programs / "git").chmod(0o755)
    environ = world.environ | {"PATH": f"{programs}:/bin:/usr/bin"}
    with open(os.open(held, os.O_RDONLY | os.O_NONBLOCK), "rb") as until_ended:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(partial(identify, top, environ=environ, timeout_s=3600))
                await anyio.Path(begun).read_text()
                group.cancel_scope.cancel()
        # The kernel closes the other end. Whether the number of the process is free says less: it may be used again.
        assert select.select([until_ended], [], [], 60)[0], "it outlives its caller"
        assert until_ended.read() == b""


@pytest.mark.parametrize("kind", ["new", "remembered"])
@pytest.mark.parametrize("named", ["victim", "", ".git"])
async def test_a_worktree_that_the_configuration_names_elsewhere_is_no_project(
    world: World, named: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    top = world.repository("repo")
    (world.home / "victim").mkdir()
    if kind == "remembered":
        await world.identify(top)
    elsewhere = world.home / named if named != ".git" else top / ".git"
    world.git(top, "config", "core.worktree", str(elsewhere))
    place = await world.identify(top)
    assert (place.id, place.vcs, place.worktree, place.top) == (GLOBAL, None, Path("/"), top)
    assert f"its repository names the worktree {elsewhere}" in caplog.text


@pytest.mark.parametrize("file", [".git", ".git/config"])
async def test_a_repository_that_names_a_loop_of_links_is_no_project(world: World, file: str) -> None:
    top, loop = world.home / "repo", world.home / "loop"
    loop.symlink_to(loop)
    (top / file).parent.mkdir(parents=True)
    (top / file).write_text({".git/config": f"[core]\nworktree = {loop}\n"}.get(file, f"{loop}\n"), "utf-8")
    assert (await world.identify(top)).id == GLOBAL


async def test_a_worktree_that_the_configuration_names_here_is_one(world: World) -> None:
    top = world.repository("a repo; with #signs")
    world.git(top, "config", "core.worktree", str(top))
    project = (await world.identify(top)).id
    assert (await world.identify(top)).id == project == world.git(top, "rev-parse", "HEAD")
    assert git.configured_worktree(top / ".git") == top


async def test_a_submodule_is_a_worktree_of_its_own(world: World) -> None:
    source, top = world.repository("source"), world.repository("top")
    world.git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source), "sub")
    for _ in ("asked of git", "remembered"):
        place = await world.identify(top / "sub")
        assert (place.vcs, place.worktree) == ("git", top / "sub")
