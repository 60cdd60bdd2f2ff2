"""`/name` in ``turnkeeper run``, on a store and on a server, and ``turnkeeper command``."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_store import command
from workshop import Shop

OFFLINE = ("-m", "offline/tk-1")


def put(shop: Shop, name: str, text: str) -> Path:
    file = shop.project / ".turnkeeper" / "commands" / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def first_prompt(shop: Shop) -> str:
    """The text of the first prompt of the newest session."""
    asked = shop.messages(shop.sessions()[0]["id"])[0]
    return str(asked["parts"][0]["text"])


@contextmanager
def serving(shop: Shop) -> Iterator[str]:
    """The address of a server in a process of its own."""
    words = command("serve", "--port", "0", "--json")
    with subprocess.Popen(
        words, cwd=shop.project, env=shop.environ(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield str(json.loads(process.stdout.readline())["url"])
        finally:
            process.kill()


def test_a_command_is_sent_with_its_arguments_its_programs_and_standard_input(shop: Shop) -> None:
    put(shop, "team/greet", "Greet $1 in $2, on !`echo $((40 + 2))`")
    done = shop.run("/team/greet", "Ada", "plain words", stdin=b"$1 @README.md\n")
    assert done.code == 0, done.err
    assert first_prompt(shop) == "Greet Ada in plain words, on 42\n\n$1 @README.md"
    parts = shop.messages(shop.sessions()[0]["id"])[0]["parts"]
    assert len(parts) == 1, "standard input attaches no file"


def test_a_command_in_a_folder_is_refused_as_long_as_nobody_trusts_it(shop: Shop) -> None:
    put(shop, "team/p", "Say $1")
    for text, words in (("/team/p x", "turnkeeper trust"), ("/team/q x", "there is no command 'team/q'")):
        done = shop.process("run", *OFFLINE, text, TURNKEEPER_TRUST="")
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
    assert shop.sessions() == []
    done = shop.process("run", *OFFLINE, "/etc/hosts is wrong", TURNKEEPER_TRUST="")
    assert done.returncode == 0, done.stderr
    assert first_prompt(shop) == "/etc/hosts is wrong"


@pytest.mark.parametrize(
    ("text", "words"),
    [("/revew it", "the nearest are: review"), ("/tmp is full", "begin the message with a space"), ("/x", "known are")],
)
def test_an_unknown_command_is_refused_and_nothing_is_sent(shop: Shop, text: str, words: str) -> None:
    done = shop.run(text)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert shop.sessions() == []


@pytest.mark.parametrize("text", ["/etc/hosts is what?", "/notes.md is what?", " /revew it", "/ and nothing"])
def test_a_path_and_a_message_after_a_space_are_sent_as_they_are(shop: Shop, text: str) -> None:
    assert shop.run(text).code == 0
    assert first_prompt(shop) == text.strip()


def test_a_program_that_is_not_allowed_leaves_no_session(shop: Shop) -> None:
    shop.configure(permission={"bash": "deny"})
    put(shop, "go", "!`echo hi`")
    done = shop.run("/go")
    assert done.code == 1
    assert "!`echo hi` is not run" in done.err
    assert shop.sessions() == []


def test_help_lists_the_commands_and_actions_need_a_session_and_go_alone(shop: Shop) -> None:
    put(shop, "greet", "---\ndescription: A greeting\n---\nHello")
    listed = shop.run("/help")
    assert (listed.code, "/greet" in listed.out, "/undo" in listed.out) == (0, True, True)
    assert shop.sessions() == []
    for name in ("compact", "undo", "redo", "share", "unshare", "export"):
        lost = shop.run(f"/{name}")
        assert (lost.code, f"/{name} needs a session" in lost.err) == (2, True)
    shop.run("read README.md")
    refused = shop.run("-c", "/compact now")
    assert (refused.code, "/compact goes alone" in refused.err) == (2, True)
    shared = shop.run("-c", "/share")
    assert (shared.code, "somebody must agree" in shared.err) == (2, True)
    assert shop.run("-c", "/undo").code == 2
    unshared = shop.run("-c", "/unshare")
    assert (unshared.code, "has no link" in unshared.err) == (1, True)
    assert shop.process("session", "share", shop.sessions()[0]["id"], "--yes").returncode == 0
    unshared = shop.run("-c", "/unshare")
    assert (unshared.code, unshared.err) == (0, "The link is withdrawn.\n")
    assert "share" not in shop.sessions()[0]
    exported = shop.run("-c", f"/export {shop.project / 'out.json'}")
    assert exported.code == 0, exported.err
    assert json.loads((shop.project / "out.json").read_text())["info"]["id"] == shop.sessions()[0]["id"]


def test_words_mention_files_and_standard_input_does_not(shop: Shop) -> None:
    assert shop.run("what is in @tides.py?", stdin=b"and @README.md").code == 0
    parts = shop.messages(shop.sessions()[0]["id"])[0]["parts"]
    assert [one["filename"] for one in parts if one["type"] == "file"] == ["tides.py"]
    assert parts[0]["text"] == "what is in @tides.py?"
    assert parts[-1]["text"] == "and @README.md"


def test_a_mentioned_file_that_is_not_there_is_noted_and_sent_as_text(shop: Shop) -> None:
    said = shop.run("see @gone.py:3, @tides.py and @docs/gone, not @property", stdin=b"nor @piped.py")
    notes = [line for line in said.err.splitlines() if "No such file" in line]
    assert notes == ["! No such file: gone.py; sent as text", "! No such file: docs/gone; sent as text"]
    assert said.code == 0
    assert first_prompt(shop).startswith("see @gone.py:3,")
    assert "No such file" not in shop.run("-c", "!echo @gone.py").err


def test_a_command_of_the_configuration_takes_the_place_of_a_built_in_one(shop: Shop) -> None:
    put(shop, "undo", "Say undo")
    assert shop.run("/undo").code == 0
    assert first_prompt(shop) == "Say undo"


def test_commands_of_a_project_that_is_not_trusted_are_unknown_and_named(shop: Shop) -> None:
    file = put(shop, "deploy", "!`touch ran`")
    done = shop.process("run", *OFFLINE, "/deploy", TURNKEEPER_TRUST="")
    assert (done.returncode, "there is no command 'deploy'" in done.stderr) == (2, True)
    listed = json.loads(shop.process("command", "list", "--json", TURNKEEPER_TRUST="").stdout)
    assert "deploy" not in [one["name"] for one in listed["items"]]
    assert listed["problems"] == [f"{file}: not in force until `turnkeeper trust`: command.deploy"]
    assert not (shop.project / "ran").exists()


def test_the_list_and_one_command_name_their_files_and_no_secrets(shop: Shop) -> None:
    file = put(shop, "sub/t2", "---\ndescription: Two\nagent: plan\nsubtask: true\n---\nDo $2 with $ARGUMENTS")
    shop.configure(command={"secret": {"template": "{env:SECRET_WORDS}"}})
    listed = json.loads(shop.process("command", "list", "--json").stdout)
    names = [one["name"] for one in listed["items"]]
    assert names == [
        "compact",
        "export",
        "help",
        "init",
        "redo",
        "review",
        "secret",
        "share",
        "sub/t2",
        "undo",
        "unshare",
    ]
    row = {
        "name": "sub/t2",
        "kind": "prompt",
        "description": "Two",
        "from": str(file),
        "agent": "plan",
        "model": None,
        "variant": None,
        "subtask": True,
        "hints": ["$2", "$ARGUMENTS"],
    }
    assert listed["items"][names.index("sub/t2")] == row
    shown = json.loads(shop.process("command", "show", "/sub/t2", "--json").stdout)
    assert shown == {**row, "template": "Do $2 with $ARGUMENTS"}
    secret = shop.process("command", "show", "secret", SECRET_WORDS="hunter2")
    assert ("{env:SECRET_WORDS}" in secret.stdout, "hunter2" in secret.stdout) == (True, False)
    assert shop.process("command", "list").stdout.startswith("COMMAND ")
    unknown = shop.process("command", "show", "revew")
    assert (unknown.returncode, "the nearest are: review" in unknown.stderr) == (1, True)


def test_a_server_takes_the_same_commands(shop: Shop) -> None:
    put(shop, "greet", "Greet $1: !`echo hi`")
    put(shop, "denied", "!`rm -rf x`")
    shop.configure(permission={"bash": {"*": "allow", "rm *": "deny"}})
    with serving(shop) as url:

        def run(*words: str) -> "subprocess.CompletedProcess[str]":
            return shop.process("run", *OFFLINE, "--server", url, *words, stdin="more\n")

        done = run("/greet", "Ada")
        assert done.returncode == 0, done.stderr
        assert first_prompt(shop) == "Greet Ada: hi\n\nmore"
        unknown = run("/gret")
        assert (unknown.returncode, "the nearest are: greet" in unknown.stderr) == (2, True)
        denied = run("/denied")
        assert (denied.returncode, "rm -rf x" in denied.stderr) == (1, True)
        assert len(shop.sessions()) == 1
        assert "/greet" in shop.process("run", "--server", url, "/help").stdout
        shared = shop.process("run", "--server", url, "-c", "/share")
        assert (shared.returncode, "somebody must agree" in shared.stderr) == (2, True)
        unshared = shop.process("run", "--server", url, "-c", "/unshare")
        assert (unshared.returncode, "has no link" in unshared.stderr) == (1, True)
