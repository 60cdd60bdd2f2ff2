"""A thousand secrets of many kinds at many kinds of places: nearly all are masked, and code is nearly left alone."""

import json
import sysconfig
from collections import Counter
from pathlib import Path

from secret_corpus import PLACES, Hidden, corpus, known

from turnkeeper.core.redaction import Redactor
from turnkeeper.interop import redacted

ROOT = Path(__file__).resolve().parents[2]
SEED, COUNT = 20, 1000


def is_left(hidden: Hidden, masked: dict[str, object]) -> bool:
    """Whether something of the secret is left in a message."""
    parts = masked["parts"]
    assert isinstance(parts, list)
    together = "".join(str(part.get("text", "")) for part in parts)
    text = json.dumps(masked, ensure_ascii=False) + together
    return any(one in text or json.dumps(one)[1:-1] in text for one in hidden.gone)


def test_at_least_99_of_100_secrets_are_masked_at_20_kinds_of_places() -> None:
    hidden = list(corpus(SEED, COUNT))
    told = known(hidden)
    left = [one for one in hidden if is_left(one, redacted.message(Redactor(told), one.message, "message 1"))]
    assert len({one.place for one in hidden}) == len(PLACES) >= 20
    missed = Counter((one.secret.kind, one.place) for one in left)
    assert len(left) <= COUNT // 100, missed.most_common(20)


def test_the_corpus_is_not_masked_by_itself() -> None:
    hidden = list(corpus(SEED, 100))
    assert all(is_left(one, one.message) for one in hidden)


def test_of_100_kb_of_code_and_documents_hardly_a_place_is_masked() -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *sorted(library.glob("*.py"))[:80]]
    size, masked = 0, list[str]()
    for file in sorted(files):
        text = file.read_text("utf-8", "replace")
        redactor = Redactor()
        redactor.text(text, file.name)
        size += len(text)
        masked += [file.name] * redactor.report().count
    assert size > 4_000_000
    assert len(masked) / (size / 100_000) < 0.5, Counter(masked).most_common(10)


def test_what_was_written_into_an_env_file_is_masked_and_a_command_that_names_one_is_not() -> None:
    written = {"filePath": "w/.env", "content": "ZED=plain-word-secret\n"}
    shell = {"command": "LEVEL=debug-level cat .env"}
    states = [{"status": "completed", "input": one, "output": ""} for one in (written, shell)]
    parts = [{"type": "tool", "tool": "any", "state": state} for state in states]
    masked = redacted.message(Redactor(), {"info": {"role": "assistant"}, "parts": parts}, "message 1")
    first, second = (part["state"]["input"] for part in masked["parts"])
    assert first == {"filePath": "w/.env", "content": "ZED=[env-file 1]\n"}
    assert second == shell
