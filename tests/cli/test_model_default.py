"""``turnkeeper models default``: which model answers here and why, and the user's own choice of it."""

import json
from pathlib import Path

import pytest
from workshop import Shop

SONNET = "anthropic/claude-sonnet-4-5"


@pytest.fixture
def own(shop: Shop) -> Path:
    """The user's own directory of settings."""
    found = shop.home / ".config" / "turnkeeper"
    found.mkdir(parents=True)
    return found


def test_without_settings_the_keys_decide(shop: Shop) -> None:
    offline = shop.process("models", "default")
    keyed = json.loads(shop.process("models", "default", "--json", OPENAI_API_KEY="env-secret").stdout)
    assert offline.stdout == "offline/tk-1: no file sets `model`, and no provider has a key of its own\n"
    assert keyed["model"].startswith("openai/gpt-")
    assert keyed["why"] == (
        "no file sets `model`; it is the best model for which there is a key (environment variable OPENAI_API_KEY)"
    )
    assert (keyed["said"], keyed["agent"], keyed["changed"]) == ([], None, [])


def test_a_choice_is_written_to_the_users_own_file_and_removed_again(shop: Shop) -> None:
    file = shop.home / ".config" / "turnkeeper" / "turnkeeper.jsonc"
    chosen = shop.process("models", "default", SONNET)
    assert chosen.stdout == (f"Wrote ~/.config/turnkeeper/turnkeeper.jsonc\n{SONNET}: set in {file}:2:3 (user)\n"), (
        chosen.stderr
    )
    assert file.read_text() == f'{{\n  "model": "{SONNET}"\n}}\n'
    removed = json.loads(shop.process("models", "default", "--unset", "--json").stdout)
    assert (removed["model"], removed["changed"]) == ("offline/tk-1", [str(file)])
    again = shop.process("models", "default", "--unset")
    assert "None of your own files sets a model" in again.stderr


def test_comments_and_layout_of_the_file_stay(shop: Shop, own: Path) -> None:
    file = own / "turnkeeper.jsonc"
    file.write_text('{\n  // dark, at night\n  "theme": "dark",\n  "model": "openai/gpt-5", // for now\n}\n')
    assert shop.process("models", "default", SONNET).returncode == 0
    assert file.read_text() == (f'{{\n  // dark, at night\n  "theme": "dark",\n  "model": "{SONNET}", // for now\n}}\n')
    other = own / "turnkeeper.toml"
    other.write_text("# mine\n[agent.plan]\ncolor = '#00ff00'\n")
    assert shop.process("models", "default", "openai/gpt-5").returncode == 0
    assert other.read_text() == "model = \"openai/gpt-5\"\n# mine\n[agent.plan]\ncolor = '#00ff00'\n"
    assert shop.process("models", "default", "--unset").returncode == 0
    assert other.read_text() == "# mine\n[agent.plan]\ncolor = '#00ff00'\n"
    assert file.read_text() == '{\n  // dark, at night\n  "theme": "dark",\n  // for now\n}\n'


def test_a_file_that_cannot_be_edited_is_left_alone_and_what_to_paste_is_told(shop: Shop, own: Path) -> None:
    file = own / "turnkeeper.json"
    before = '{"model": "openai/gpt-5", "model": "openai/gpt-5-mini"}'
    file.write_text(before)
    for words in (("models", "default", SONNET), ("models", "default", "--unset")):
        run = shop.process(*words)
        assert (run.returncode, run.stdout) == (1, "")
        assert "was left alone" in run.stderr
        assert file.read_text() == before
    assert f'put this at its top: "model": "{SONNET}"' in shop.process("models", "default", SONNET).stderr


def test_a_project_decides_before_the_user_and_its_file_is_never_written(shop: Shop, own: Path) -> None:
    shop.configure(model="openai/gpt-5", agent={"build": {"model": "openai/gpt-5-mini"}})
    before = (shop.project / "turnkeeper.json").read_text()
    run = shop.process("models", "default", SONNET, TURNKEEPER_TRUST="1")
    assert "openai/gpt-5: set in" in run.stdout
    assert "turnkeeper.json:1:2 (project)" in run.stdout
    assert "overridden by a stronger file" in run.stdout
    assert f"Elsewhere {SONNET} answers" in run.stdout
    assert "The agent build has its own: openai/gpt-5-mini" in run.stdout
    assert (shop.project / "turnkeeper.json").read_text() == before


def test_a_model_that_does_not_exist_is_refused_and_one_that_is_set_is_explained(shop: Shop, own: Path) -> None:
    refused = shop.process("models", "default", "anthropic/claude-sonet-4-5")
    assert (refused.returncode, list(own.iterdir())) == (1, [])
    assert f"did you mean '{SONNET.partition('/')[2]}'" in refused.stderr
    (own / "turnkeeper.json").write_text('{"model": "anthropic/nothing"}')
    shown = shop.process("models", "default")
    assert (shown.returncode, shown.stdout.startswith("anthropic/nothing: set in ")) == (0, True)
    assert "but provider 'anthropic' has no model 'nothing'" in shown.stdout
    assert shop.process("models", "default", SONNET, "--unset").returncode == 2


def test_a_link_to_the_file_stays_a_link(shop: Shop, own: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.json").write_text("{}")
    (own / "turnkeeper.json").symlink_to(tmp_path / "dotfiles.json")
    assert shop.process("models", "default", SONNET).returncode == 0
    assert (own / "turnkeeper.json").is_symlink()
    assert json.loads((tmp_path / "dotfiles.json").read_text()) == {"model": SONNET}
