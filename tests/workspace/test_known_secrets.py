"""What is known to be secret in a workspace."""

from pathlib import Path

import pytest

from turnkeeper.workspace.known_secrets import ENV_VALUE, known_secrets

KEY = [
    "-----BEGIN PRIVATE KEY-----",
    "MIIEvQIBADANBgkqhkiG9w0B",
    "AQEFAASCBKcwggSjAgEAAoIB",
    "-----END PRIVATE KEY-----",
]


def env_values(directory: Path) -> list[str]:
    found = known_secrets({"HOME": "/nowhere"}, str(directory))
    return [secret.value for secret in found if secret.kind == ENV_VALUE]


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\\n"])
def test_each_line_of_a_value_of_several_lines_is_a_secret_too(tmp_path: Path, line_break: str) -> None:
    (tmp_path / ".env").write_bytes(f'SIGNING_KEY="{line_break.join(KEY)}"\n'.encode())
    [whole, *lines] = env_values(tmp_path)
    assert whole.startswith(KEY[0])
    assert lines == KEY[1:3], "the first and the last line are the same for every key"


def test_the_lines_of_a_value_that_are_ordinary_text_are_not_secret(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text('GREETING="Welcome to the house.\nshort-1\nCome in and sit down."\n')
    assert len(env_values(tmp_path)) == 1
