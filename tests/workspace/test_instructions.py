"""The instruction service: which files and addresses are in force, and what they say."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from turnkeeper.core import flags
from turnkeeper.core.limits import INSTRUCTION_BYTES_MAX
from turnkeeper.workspace.instructions import InstructionSource, discover, nearby, read
from turnkeeper.workspace.project import ProjectPlace, identify

[_, NO_CLAUDE] = flags.DISABLE_CLAUDE_CODE.names
[NO_PROJECT, _] = flags.DISABLE_PROJECT_CONFIG.names


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository, with the user's home beside it."""
    folder = (tmp_path / "project").resolve()
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    (tmp_path / "home").mkdir()
    return folder


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def at(folder: Path) -> ProjectPlace:
    folder.mkdir(parents=True, exist_ok=True)
    return await identify(folder)


def found(
    place: ProjectPlace,
    root: Path,
    *configured: str,
    nested: tuple[str, ...] = (),
    environ: Mapping[str, str] | None = None,
) -> list[str]:
    home = root.parent / "home"
    sources = discover(place, configured, nested, {"HOME": str(home), **(environ or {})}, home)
    return [one.name.replace(f"{root.parent}/", "") for one in sources]


async def test_files_come_from_the_user_then_from_the_directory_upwards_then_from_the_configuration(root: Path) -> None:
    put(root.parent / "home/.config/turnkeeper/AGENTS.md")
    for name in ("AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md", "a/docs/rules.md", "docs/rules.md", "docs/style.md"):
        put(root / name)
    nested = str(put(root / "a/b/c/AGENTS.md"))
    names = ("docs/*.md", "http://example.org/rules.md", str(root / "docs/style.md"), "~/own.md")
    put(root.parent / "home/own.md")
    assert found(await at(root / "a/b"), root, *names, nested=(nested,)) == [
        "home/.config/turnkeeper/AGENTS.md",
        "project/a/b/AGENTS.md",
        "project/a/AGENTS.md",
        "project/AGENTS.md",
        "project/a/docs/rules.md",
        "project/docs/rules.md",
        "project/docs/style.md",
        "home/own.md",
        "http://example.org/rules.md",
        "project/a/b/c/AGENTS.md",
    ]


async def test_the_first_name_that_is_found_anywhere_counts(root: Path) -> None:
    put(root / "CLAUDE.md")
    put(root / "a/CONTEXT.md")
    place = await at(root / "a")
    assert found(place, root) == ["project/CLAUDE.md"]
    assert found(place, root, environ={NO_CLAUDE: "1"}) == ["project/a/CONTEXT.md"]
    assert found(place, root, environ={NO_PROJECT: "1"}) == []
    put(root / "AGENTS.md")
    assert found(place, root) == ["project/AGENTS.md"]


async def test_one_global_file_counts_our_own_first(root: Path) -> None:
    place = await at(root)
    put(root.parent / "home/.claude/CLAUDE.md")
    assert found(place, root) == ["home/.claude/CLAUDE.md"]
    assert found(place, root, environ={NO_CLAUDE: "1"}) == []
    put(root.parent / "home/.config/turnkeeper/AGENTS.md")
    assert found(place, root) == ["home/.config/turnkeeper/AGENTS.md"]


async def test_nothing_above_the_root_counts_nor_above_a_directory_outside_a_repository(
    root: Path, tmp_path: Path
) -> None:
    put(tmp_path / "AGENTS.md")
    assert found(await at(root / "a"), root) == []
    assert found(await at(tmp_path / "plain/a"), root) == []


async def test_a_project_file_that_leads_out_of_the_project_is_not_read(root: Path, tmp_path: Path) -> None:
    secret = put(tmp_path / "secret.md", "secret")
    place = await at(root / "a")
    (root / "a/AGENTS.md").symlink_to(secret)
    (root / "a/b").mkdir()
    (root / "a/b/AGENTS.md").symlink_to(secret)
    (root / "a/rules.md").symlink_to(secret)
    assert found(place, root, "rules.md", "../../secret.md") == []
    assert nearby(put(root / "a/b/code.py"), place, {}) == []
    nested = put(root / "a/c/AGENTS.md")
    assert found(place, root, nested=(str(nested),)) == ["project/a/c/AGENTS.md"]
    nested.unlink()
    nested.symlink_to(secret)
    assert found(place, root, nested=(str(nested),)) == []


async def test_a_link_inside_the_project_is_the_file_it_leads_to(root: Path) -> None:
    put(root / "docs/RULES.md")
    (root / "AGENTS.md").symlink_to("docs/RULES.md")
    assert found(await at(root), root, "docs/RULES.md") == ["project/docs/RULES.md"]


async def test_links_in_a_circle_and_patterns_of_nonsense_find_nothing(root: Path) -> None:
    (root / "AGENTS.md").symlink_to("AGENTS.md")
    place = await at(root)
    assert found(place, root, "", "[", "**[", "a\0b", nested=(str(root / "AGENTS.md"),)) == []
    assert nearby(root / "AGENTS.md", place, {}) == []


async def test_files_near_one_that_was_read_are_met_nearest_first(root: Path) -> None:
    place = await at(root / "a")
    inner, outer = put(root / "a/b/c/CLAUDE.md"), put(root / "a/b/AGENTS.md")
    put(root / "a/AGENTS.md")
    put(root / "AGENTS.md")
    assert nearby(root / "a/b/c/code.py", place, {}) == [str(inner), str(outer)]
    assert nearby(root / "a/b/c/code.py", place, {NO_CLAUDE: "1"}) == [str(outer)]
    assert nearby(root / "a/b/c/code.py", place, {NO_PROJECT: "1"}) == []
    assert nearby(outer, place, {}) == [], "the file itself was read"
    assert nearby(root / "a/code.py", place, {}) == [], "those hold anyway"
    beside = put(root / "beside/AGENTS.md")
    assert nearby(root / "beside/code.py", place, {}) == [str(beside)]
    assert nearby(put(root.parent / "elsewhere/AGENTS.md").parent / "code.py", place, {}) == []


async def test_a_name_that_no_log_can_hold_is_not_met(root: Path) -> None:
    folder = root / os.fsdecode(b"caf\xe9")
    put(folder / "AGENTS.md")
    assert nearby(folder / "code.py", await at(root), {}) == []


def test_a_file_is_read_whole_or_cut_and_says_so(tmp_path: Path) -> None:
    assert read(InstructionSource(name=str(put(tmp_path / "a.md", "  Be kind.\n\n")))) == "Be kind."
    long = read(InstructionSource(name=str(put(tmp_path / "long.md", "x" * (INSTRUCTION_BYTES_MAX + 5)))))
    assert (
        long
        == f"{'x' * INSTRUCTION_BYTES_MAX}\n[the file is larger than {INSTRUCTION_BYTES_MAX} bytes and was cut here]"
    )
    (tmp_path / "bytes.md").write_bytes(b"caf\xe9")
    assert read(InstructionSource(name=str(tmp_path / "bytes.md"))) == "caf\ufffd"


def test_a_file_that_is_gone_is_nothing_and_one_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    assert read(InstructionSource(name=str(tmp_path / "none.md"))) is None
    assert read(InstructionSource(name=str(put(tmp_path / "file") / "below.md"))) is None
    (tmp_path / "folder.md").mkdir()
    assert read(InstructionSource(name=str(tmp_path / "folder.md"))) is None
    os.mkfifo(tmp_path / "pipe.md")
    assert read(InstructionSource(name=str(tmp_path / "pipe.md"))) is None
    with pytest.raises(OSError, match="Input/output error"):
        read(InstructionSource(name="/proc/self/mem"))  # It is there for everyone, and its first page for nobody.


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="there is no /proc")
async def test_nothing_is_near_a_file_behind_a_link_that_is_gone_while_it_is_looked_at(root: Path) -> None:
    """As behind the link of a process that has ended: it can be seen and not be read."""
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert nearby(Path(f"/proc/{ended.pid}/cwd/code.py"), await at(root), {"HOME": "/"}) == []
    finally:
        ended.wait()
