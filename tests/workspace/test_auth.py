"""Credentials are kept for their owner alone and are never shown."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace.auth import (
    ApiKey,
    AuthFile,
    Credential,
    CredentialCache,
    Credentials,
    FoundKey,
    OAuth,
    WellKnown,
    credentials,
    file,
)

WRITER = """
import sys
from pathlib import Path
from turnkeeper.workspace.auth import ApiKey, AuthFile
for number in range(20):
    AuthFile(Path(sys.argv[1])).write(f"{sys.argv[2]}-{number}", ApiKey(key="k"))
"""


@pytest.fixture
def auth(tmp_path: Path) -> AuthFile:
    return AuthFile(tmp_path / "data" / "auth.json")


def test_a_credential_is_kept_in_opencodes_layout(auth: AuthFile) -> None:
    auth.write("anthropic", ApiKey(key="a"))
    auth.write("copilot", OAuth(refresh="r", access="x", expires=5, account_id="me"))
    auth.write("https://host", WellKnown(key="TOKEN", token="t"))
    assert json.loads(auth.path.read_text()) == {
        "anthropic": {"type": "api", "key": "a"},
        "copilot": {"type": "oauth", "refresh": "r", "access": "x", "expires": 5, "accountId": "me"},
        "https://host": {"type": "wellknown", "key": "TOKEN", "token": "t"},
    }
    assert auth.read() == {
        "anthropic": ApiKey(key="a"),
        "copilot": OAuth(refresh="r", access="x", expires=5, account_id="me"),
        "https://host": WellKnown(key="TOKEN", token="t"),
    }


def test_only_the_owner_may_read_the_file(auth: AuthFile) -> None:
    auth.path.parent.mkdir()
    auth.path.write_text("{}")
    auth.path.chmod(0o644)
    auth.write("anthropic", ApiKey(key="a"))
    assert auth.path.stat().st_mode & 0o777 == 0o600


def test_a_new_directory_is_the_owners_alone(auth: AuthFile) -> None:
    auth.write("anthropic", ApiKey(key="a"))
    assert auth.path.parent.stat().st_mode & 0o777 == 0o700


def test_nothing_is_left_beside_the_file(auth: AuthFile) -> None:
    auth.write("anthropic", ApiKey(key="a"))
    auth.remove("anthropic")
    assert [path.name for path in auth.path.parent.iterdir()] == ["auth.json"]


def test_a_credential_is_removed_once(auth: AuthFile) -> None:
    auth.write("anthropic", ApiKey(key="a"))
    auth.write("openai", ApiKey(key="b"))
    assert auth.remove("anthropic") is True
    assert auth.remove("anthropic") is False
    assert auth.read() == {"openai": ApiKey(key="b")}


def test_removing_from_nothing_makes_no_file(auth: AuthFile) -> None:
    assert auth.remove("anthropic") is False
    assert not auth.path.parent.exists()


def test_entries_of_an_unknown_kind_are_kept(auth: AuthFile) -> None:
    auth.path.parent.mkdir()
    auth.path.write_text('{"new": {"type": "passkey", "id": 1}, "odd": 3}')
    auth.write("openai", ApiKey(key="b"))
    assert auth.read() == {"openai": ApiKey(key="b")}
    assert json.loads(auth.path.read_text())["new"] == {"type": "passkey", "id": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"openai": {"type": "api", "key": 5}}', "auth.json: openai: Expected `str`, got `int`"),
        ('{"openai": ', "auth.json: cannot be read"),
        ('["s3cret"]', "auth.json: cannot be read"),
    ],
)
def test_a_broken_file_is_named_and_its_secrets_are_not(auth: AuthFile, content: str, message: str) -> None:
    auth.path.parent.mkdir()
    auth.path.write_text(content)
    with pytest.raises(Invalid) as caught:
        auth.read()
    assert message in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_two_processes_that_write_at_once_lose_nothing(auth: AuthFile) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(auth.path), name]) for name in ("one", "two")]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(auth.read()) == 40


STORED: dict[str, Credential] = {"openai": ApiKey(key="stored"), "copilot": OAuth(refresh="r", access="x", expires=5)}


@pytest.mark.parametrize(
    ("environ", "configured", "found"),
    [
        ({"A_KEY": "first", "B_KEY": "second"}, "written", FoundKey("first", "environment variable A_KEY")),
        ({"A_KEY": "  ", "B_KEY": " second\n"}, "written", FoundKey("second", "environment variable B_KEY")),
        ({}, "written", FoundKey("written", "configuration")),
        ({}, "", FoundKey("stored", "auth.json")),
        ({}, None, FoundKey("stored", "auth.json")),
    ],
)
def test_a_key_is_looked_for_in_the_environment_then_the_configuration_then_the_file(
    environ: dict[str, str], configured: str | None, found: FoundKey
) -> None:
    assert Credentials(environ, STORED).key("openai", ("A_KEY", "B_KEY"), configured) == found


def test_a_login_gives_its_access_token_and_nothing_gives_none() -> None:
    assert Credentials({}, STORED).key("copilot", (), None) == FoundKey("x", "auth.json")
    assert Credentials({}, STORED).key("nobody", (), None) is None


def test_no_value_shows_its_secret() -> None:
    secrets = [
        ApiKey(key="s3cret"),
        OAuth(refresh="s3cret", access="s3cret", expires=1),
        WellKnown(key="K", token="s3cret"),
        FoundKey("s3cret", "auth.json"),
        Credentials({"A_KEY": "s3cret"}, {"openai": ApiKey(key="s3cret")}),
    ]
    assert "s3cret" not in f"{secrets!r} {[str(each) for each in secrets]}"


def test_the_file_stands_in_the_data_directory(tmp_path: Path) -> None:
    environ = {"TURNKEEPER_DATA": str(tmp_path)}
    file(environ).write("openai", ApiKey(key="k"))
    assert (tmp_path / "auth.json").exists()
    assert credentials(environ).key("openai", (), None) == FoundKey("k", "auth.json")


def test_a_reader_notices_a_key_that_came_changed_or_went(tmp_path: Path) -> None:
    environ = {"TURNKEEPER_DATA": str(tmp_path)}
    reader = CredentialCache(environ)
    assert reader.read().stored == {}
    for secret in ("one", "two"):
        file(environ).write("openai", ApiKey(key=secret))
        assert reader.read().key("openai", (), None) == FoundKey(secret, "auth.json")
    (tmp_path / "auth.json").write_text("nonsense")
    for _ in range(2):
        with pytest.raises(Invalid):
            reader.read()
    (tmp_path / "auth.json").unlink()
    assert reader.read().stored == {}


def test_a_file_kept_elsewhere_by_a_link_is_written_there(auth: AuthFile, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text("{}")
    kept.chmod(0o644)
    auth.path.parent.mkdir(parents=True, exist_ok=True)
    auth.path.symlink_to(kept)
    auth.write("openai", ApiKey(key="secret"))
    assert auth.path.is_symlink()
    assert ("secret" in kept.read_text(), kept.stat().st_mode & 0o777) == (True, 0o600)
