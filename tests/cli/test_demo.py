"""What ``make run`` shows a newcomer."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_first_minute_finds_a_bug_mends_it_and_needs_no_key() -> None:
    script = [sys.executable, "-W", "error", str(ROOT / "scripts/demo.py")]
    run = subprocess.run(script, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "FAILED (failures=1)" in run.stdout
    assert "In `tides.py`, `/ 100` is now `/ 60`." in run.stdout
    assert "± edit tides.py  +1 -1" in run.stderr
    assert run.stderr.count("go on with: tk run -c") == 2
    assert "8 attempts, 1 session" in run.stdout
    assert (ROOT / "sample/tides.py").read_text().count("/ 100") == 1
