"""A damaged files store: what is wrong is named, every command goes on with the rest, and none waits for a pipe."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_store import Answer, tk

import turnkeeper
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.testing.builders import a_session, a_turn

LONG, OTHER = "ses_long", "ses_other"


async def fill(store: str) -> None:
    async with turnkeeper.open(store) as opened:
        create = opened.store.journal.create
        await create(a_session(LONG, title="Long tide"), *a_turn(LONG, 1, answer="blob " * BLOB_CHARS_MIN))
        await create(a_session(OTHER, title="Other tide", parent_id=LONG), *a_turn(OTHER, 1))
        prompt = Prompt(parts=(TextInput(text="later"),), no_reply=True)
        await opened.prompt((await opened.create(title="Tide with a project")).id, prompt)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that nothing has damaged yet."""
    path = tmp_path_factory.mktemp("sound") / "tree"
    asyncio.run(fill(f"files:{path}"))
    return path


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def one_byte(file: Path) -> None:
    file.write_bytes(b"\xff" + file.read_bytes()[1:])


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


DAMAGES = (emptied, one_byte, a_pipe)


def used(tree: Path, target: Path) -> Iterator[Answer]:
    """Every command that must cope with damage, the one that repairs it among them."""
    for words in (
        ("doctor", "--json"),
        ("session", "list", "--all", "--json"),
        ("session", "messages", OTHER, "--json"),
        ("session", "search", "tide", "--json"),
        ("session", "export", "--all", "--json", "--output", str(target / "all.jsonl")),
        ("doctor", "--fix", "--json"),
        ("doctor", "--json"),
    ):
        answer = tk(target, *words, "--store", f"files:{tree}")  # An exception that is no finding is raised here.
        assert "Traceback" not in answer.err, words
        assert answer.code in (0, 1), words
        yield answer


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "kind", ["meta", "receipt", "session", "state", "message", "part", "order", "recent", "project"]
)
def test_one_damaged_document_is_named_and_written_again(
    sound: Path, tmp_path: Path, kind: str, damage: Callable[[Path], None]
) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(sound, tree)
    file = min(tree.glob(f"{kind}/**/*.json"))
    damage(file)
    first, listed, *_, fixed, last = used(tree, tmp_path)
    assert first.code == 1
    assert str(file) in first.out
    assert listed.out
    assert (fixed.code, last.code) == (0, 0), last.out


@pytest.mark.parametrize("damage", DAMAGES)
def test_one_damaged_log_leaves_the_other_session_to_be_used(
    sound: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(sound, tree)
    damage(tree / "log" / f"{LONG}.jsonl")
    first, _, read, *_ = used(tree, tmp_path)
    assert (first.code, read.code) == (1, 0)
    assert LONG in first.out


def test_a_pipe_in_the_place_of_an_index_is_named_and_its_log_is_read(sound: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(sound, tree)
    a_pipe(tree / ".store" / "index" / OTHER)
    first, _, read, *_ = used(tree, tmp_path)
    assert (first.code, read.code) == (1, 0)
    assert f"index/{OTHER} is damaged: it is not an ordinary file" in first.out


@pytest.mark.parametrize("name", ["journal", "version", "words"])
def test_a_pipe_in_the_place_of_the_stores_own_files_is_named_by_every_command(
    sound: Path, tmp_path: Path, name: str
) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(sound, tree)
    a_pipe(tree / ".store" / name)
    answers = list(used(tree, tmp_path))
    assert any(str(tree / ".store" / name) in one.out + one.err for one in answers)
