"""The guided tour: every step does what it says, and nothing is left behind."""

import subprocess
from pathlib import Path

import pytest
from cli_store import command
from workshop import Shop

TIMEOUT_S = 280


def tour(shop: Shop, tmp_path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return subprocess.run(
        command("demo", *words),
        env=shop.environ(TMPDIR=str(scratch)),
        cwd=shop.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.timeout(300)
def test_every_step_shows_what_it_promises(shop: Shop, tmp_path: Path) -> None:
    run = tour(shop, tmp_path, "--yes")
    assert run.returncode == 0, run.stdout
    shown = run.stdout
    for said in (
        "1 of 7  A prompt",
        "FAILED (failures=1)",
        "± edit tides.py",
        "+    return minutes_until_high(hour, minute) / 60",
        "return minutes_until_high(hour, minute) / 100",
        "(fork #1)",
        "Compacted from about",
        "$ kill -9",
        "is gone",
        "marked as interrupted and not run again",
        "sound",
        "Project and store are gone.",
    ):
        assert said in shown, f"{said!r} is missing in:\n{shown}"
    assert list((tmp_path / "scratch").iterdir()) == []
    assert list(shop.data.iterdir()) == []
    assert sorted(one.name for one in shop.project.iterdir()) == ["README.md", "tides.py"]


def test_without_a_terminal_it_says_what_to_add(shop: Shop, tmp_path: Path) -> None:
    run = tour(shop, tmp_path)
    assert run.returncode == 2
    assert "--yes does not ask" in run.stdout
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.timeout(300)
def test_a_step_can_be_skipped_and_the_tour_be_ended(shop: Shop, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with shop.terminal("demo", env={"TMPDIR": str(scratch)}) as seat:
        assert "1 of 7" in seat.read_until("q ends")
        seat.types("s\n")
        assert "2 of 7" in seat.read_until("q ends")
        seat.types("q\n")
        assert seat.end() == 0
    assert "Project and store are gone." in seat.shown
    assert "$ turnkeeper run" not in seat.shown
    assert list(scratch.iterdir()) == []
