"""The tour that ``make tour`` gives."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_tour_ends_well_and_shows_a_sound_and_a_damaged_store() -> None:
    script = [sys.executable, "-W", "error", str(ROOT / "scripts/tour.py")]
    run = subprocess.run(script, capture_output=True, text=True, check=False, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")
    assert "Verdict  ✓ sound" in run.stdout
    assert "the first bad event is" in run.stdout
