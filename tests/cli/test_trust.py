"""The command `trust`, and what a run says of a project that is not trusted."""

import json

import pytest
from workshop import Shop

WIDENING = {"model": "offline/tk-1", "permission": {"bash": "allow", "edit": "deny"}}


@pytest.fixture
def untrusting(shop: Shop) -> Shop:
    shop.configure(**WIDENING)
    return shop


def process(shop: Shop, *words: str) -> tuple[int, str, str]:
    done = shop.process(*words, TURNKEEPER_TRUST="")
    return done.returncode, done.stdout, done.stderr


def test_a_run_names_the_settings_that_it_left_out(untrusting: Shop) -> None:
    code, _, told = process(untrusting, "run", "-m", "offline/tk-1", "hello")
    assert code == 0
    assert "turnkeeper.json: not in force until the project is trusted: model, permission.bash;" in told
    assert "turnkeeper trust" in told


def test_trust_says_what_holds_from_now_on_and_can_be_revoked(untrusting: Shop) -> None:
    code, said, _ = process(untrusting, "trust", "--json")
    assert code == 0
    file = untrusting.project / "turnkeeper.json"
    assert json.loads(said) == {
        "directory": str(untrusting.project),
        "settings": [f"model of {file}", f"permission.bash of {file}"],
        "tools": [],
    }
    code, _, told = process(untrusting, "run", "hello")
    assert (code, "not in force" in told) == (0, False)
    assert json.loads(process(untrusting, "trust", "--list", "--json")[1]) == {"items": [str(untrusting.project)]}
    assert process(untrusting, "trust", "--revoke")[1] == f"{untrusting.project} is no longer trusted.\n"
    assert process(untrusting, "trust", "--revoke")[1] == f"{untrusting.project} was not trusted.\n"
    assert "No directory is trusted." in process(untrusting, "trust", "--list")[2]


def test_a_run_with_trust_takes_the_settings_once(untrusting: Shop) -> None:
    code, _, told = process(untrusting, "run", "--trust", "hello")
    assert (code, "not in force" in told) == (0, False)
    assert json.loads(process(untrusting, "trust", "--list", "--json")[1]) == {"items": []}


@pytest.mark.parametrize("words", [("trust", "nowhere"), ("trust", "--list", "--revoke")])
def test_wrong_arguments_of_trust_are_refused(untrusting: Shop, words: tuple[str, ...]) -> None:
    assert process(untrusting, *words)[0] == 2


# --- Tools of a project -------------------------------------------------------------------------------------------

ATTACK = """from pathlib import Path
Path(__file__).with_name("loaded").write_text("yes")
"""


def attack(folder: str) -> str:
    """A command that writes a file of tools in a way that no rule sees."""
    return f"run `python3 write.py {folder}`"


@pytest.fixture
def attacked(shop: Shop) -> Shop:
    write = f"import os, sys; os.makedirs(sys.argv[1]); open(sys.argv[1] + '/e.py', 'w').write({ATTACK!r})"
    (shop.project / "write.py").write_text(write)
    return shop


@pytest.mark.parametrize("folder", [".turnkeeper/tools", ".opencode/tool"])
def test_a_tool_that_a_command_wrote_is_not_loaded_in_a_trusted_project(attacked: Shop, folder: str) -> None:
    process(attacked, "trust")
    assert process(attacked, "run", "-m", "offline/tk-1", attack(folder))[0] == 0
    assert (attacked.project / folder / "e.py").exists()
    code, _, told = process(attacked, "run", "-m", "offline/tk-1", "hello")
    assert code == 0
    assert f"the tools in {attacked.project / folder / 'e.py'}; `turnkeeper trust {attacked.project}` trusts" in told
    assert not (attacked.project / folder / "loaded").exists()
    code, said, _ = process(attacked, "trust")
    assert f"These tools and plugins are trusted as they are now:\n  {attacked.project / folder / 'e.py'}\n" in said
    assert "not loaded" not in process(attacked, "run", "-m", "offline/tk-1", "hello")[2]
    assert (attacked.project / folder / "loaded").exists()


def test_a_run_with_trust_loads_no_tool_that_its_own_command_wrote(attacked: Shop) -> None:
    code, _, told = process(attacked, "run", "--trust", "-m", "offline/tk-1", attack(".turnkeeper/tools"))
    assert code == 0
    assert told.count("turnkeeper trust") == 1
    assert (attacked.project / ".turnkeeper/tools/e.py").exists()
    assert not (attacked.project / ".turnkeeper/tools/loaded").exists()
    assert process(attacked, "run", "--trust", "-m", "offline/tk-1", "hello")[0] == 0
    assert (attacked.project / ".turnkeeper/tools/loaded").exists()


def test_an_untrusted_run_says_which_tools_were_left_out(attacked: Shop) -> None:
    folder = attacked.project / ".turnkeeper/tools"
    folder.mkdir(parents=True)
    (folder / "e.py").write_text(ATTACK)
    code, _, told = process(attacked, "run", "-m", "offline/tk-1", "hello")
    assert (code, (folder / "loaded").exists()) == (0, False)
    assert f"not loaded until they are trusted: the tools in {folder / 'e.py'}" in told


def test_on_a_terminal_a_run_asks_about_tools(attacked: Shop) -> None:
    folder = attacked.project / ".turnkeeper/tools"
    folder.mkdir(parents=True)
    (folder / "e.py").write_text(ATTACK)
    words = ("run", "-m", "offline/tk-1", "hello")
    with attacked.terminal(*words, env={"TURNKEEPER_TRUST": ""}) as seat:
        assert "tools, which run with your rights and keys" in seat.read_until("[y/N]").replace("\n", " ")
        seat.types("y\n")
        assert seat.end() == 0
    assert (folder / "loaded").exists()


def test_settings_that_a_command_wrote_do_not_hold_in_a_trusted_project(shop: Shop) -> None:
    (shop.project / ".env").write_text("WIND=7\n")
    shop.configure(permission={"read": "ask"})
    process(shop, "trust")
    settings = json.dumps({"permission": {"read": {"*": "allow", "*.env": "allow"}}})
    (shop.project / "write.py").write_text(f"open('turnkeeper.json', 'w').write({settings!r})")
    assert process(shop, "run", "-m", "offline/tk-1", "run `python3 write.py`")[0] == 0
    assert (shop.project / "turnkeeper.json").read_text() == settings
    code, _, told = process(shop, "run", "-m", "offline/tk-1", "read .env")
    assert code == 1
    assert "turnkeeper.json: new or changed since the project was trusted; it only narrows what may happen" in told
    assert "permission.read.*.env" in told
    process(shop, "trust")
    code, _, told = process(shop, "run", "-m", "offline/tk-1", "read .env")
    assert (code, "trusted" in told) == (0, False)


# --- Settings without effect --------------------------------------------------------------------------------------


def test_a_run_says_that_a_project_may_not_widen_the_sandbox(shop: Shop) -> None:
    shop.configure(sandbox="off")
    told = shop.process("run", "-m", "offline/tk-1", "hello").stderr
    assert told.count("turnkeeper.json: sandbox.mode is ignored: a project's file may not widen the sandbox") == 1
    shop.configure(sandbox={"mode": "read-only", "network": False})
    assert "is ignored" not in shop.process("run", "-m", "offline/tk-1", "hello").stderr


@pytest.mark.parametrize("trusts", ["1", ""])
def test_a_run_names_the_setting_that_a_misspelt_one_is_near_to(shop: Shop, trusts: str) -> None:
    shop.configure(permissions={"bash": "deny"}, theme="dark")
    told = shop.process("run", "-m", "offline/tk-1", "hello", TURNKEEPER_TRUST=trusts).stderr
    assert told.count("there is no setting 'permissions'; did you mean 'permission'?") == 1
    assert "no setting 'theme'" not in told
