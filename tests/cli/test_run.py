"""``turnkeeper run``: a prompt goes in, and what comes of it is told."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from cli_store import command, tk
from workshop import Shop

from turnkeeper.cli.attachments import attachment
from turnkeeper.cli.options import Options
from turnkeeper.model.refusal import Invalid

NOTE = "the offline model answers"


def texts(shop: Shop, session_id: str, role: str) -> list[str]:
    found = [one for one in shop.messages(session_id) if one["info"]["role"] == role]
    return [part["text"] for one in found for part in one["parts"] if part["type"] == "text"]


def test_finished_texts_go_to_standard_output_and_the_rest_to_standard_error(shop: Shop) -> None:
    said = shop.run("read tides.py, then replace `100` with `60` in tides.py")
    assert len(shop.sessions()) == 1
    assert said.code == 0
    assert said.out.startswith("Reading `tides.py`.\nEditing `tides.py`.\n`tides.py` has 2 lines:\n")
    lines = said.err.splitlines()
    assert lines[0] == "> build · offline/tk-1"
    assert lines[1].startswith("→ read tides.py  ")
    assert lines[2].startswith("± edit tides.py  +1 -1, ")
    assert lines[3:6] == [
        "    1   def hours(minutes):",
        "    2 -     return minutes / 100",
        "    2 +     return minutes / 60",
    ]
    assert lines[6].startswith("offline/tk-1 · 3 turns · ")
    assert len(lines) == 8
    assert (shop.project / "tides.py").read_text() == "def hours(minutes):\n    return minutes / 60\n"


def test_the_hint_at_the_end_leads_to_the_same_session_and_store(shop: Shop) -> None:
    here = shop.process("run", "-m", "offline/tk-1", "read tides.py")
    [session] = shop.sessions()
    assert here.stderr.endswith(f'{session["id"]}  go on with: tk run -c "…"\n')
    elsewhere = shop.run("read tides.py", "--dir", str(shop.home))
    [newest, _] = shop.sessions()
    assert elsewhere.err.endswith(f'go on with: tk --data {shop.data} run -s {newest["id"]} "…"\n')


def test_a_hint_shows_no_password_of_an_address() -> None:
    assert Options(server="http://me:secret@box:4096").program == "tk --server URL"
    assert Options(server="http://box:4096").program == "tk --server http://box:4096"


def test_the_summary_counts_what_the_ledger_has(shop: Shop) -> None:
    said = shop.run("read tides.py")
    total = tk(shop.data, "stats", "--json").json["total"]
    used = total["tokens"]
    assert f" · {used['input']:,} in · {used['output'] + used['reasoning']:,} out · 0 cached · $0.00 · " in said.err


def test_continue_goes_on_in_the_newest_session_of_the_directory(shop: Shop, tmp_path: Path) -> None:
    shop.run("read tides.py")
    shop.run("list the files")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shop.run("list the files", "--dir", str(elsewhere))
    newest, second, first = shop.sessions()
    assert shop.run("-c", "read README.md").code == 0
    assert texts(shop, second["id"], "user") == ["list the files", "read README.md"]
    assert [len(texts(shop, one["id"], "user")) for one in (newest, first)] == [1, 1]


def test_continue_without_a_session_says_what_to_do(shop: Shop) -> None:
    refused = shop.run("-c", "read tides.py")
    assert (refused.code, refused.out) == (1, "")
    assert "leave out --continue" in refused.err
    assert "or name one of another directory with --session" in refused.err


def test_a_session_is_named_as_everywhere_and_a_fork_leaves_it_alone(shop: Shop) -> None:
    shop.run("read tides.py")
    [first] = shop.sessions()
    run = shop.process("run", "-s", first["slug"], "--fork", "read README.md")
    assert run.returncode == 0, run.stderr
    fork = next(one for one in shop.sessions() if one["id"] != first["id"])
    assert texts(shop, fork["id"], "user") == ["read tides.py", "read README.md"]
    assert texts(shop, first["id"], "user") == ["read tides.py"]


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        ([], "give a message", 2),
        ([""], "give a message", 2),
        ([" \n "], "give a message", 2),
        (["-f", "tides.py:999-9999", "hi"], "tides.py has 2, counted from 1", 2),
        (["-f", "tides.py:0", "hi"], "tides.py has 2", 2),
        (["-f", "tides.py:2-1", "hi"], "tides.py has 2", 2),
        (["--fork", "hi"], "--session, or take the newest with --continue", 2),
        (["-s", "calm-otter", "-c", "hi"], "not both", 2),
        (["-s", "calm-otter", "hi"], "leave out --dir", 2),
        (["-f", "", "hi"], "--file is empty", 2),
        (["-f", "nowhere.md", "hi"], "does not exist", 1),
        (["-m", "offline", "hi"], "PROVIDER/MODEL", 2),
        (["-m", "anthropc/claude", "hi"], "did you mean 'anthropic'", 1),
        (["--agent", "nobody", "hi"], "the agents are: build", 1),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_stored(
    shop: Shop, words: list[str], said: str, code: int
) -> None:
    refused = shop.run(*words)
    assert (refused.code, refused.out) == (code, "")
    assert said in refused.err
    assert len(refused.err.splitlines()) == 1
    assert shop.sessions() == []


@pytest.mark.parametrize(("option", "said"), [("--dir", "is not a directory"), ("--file", "does not exist")])
def test_a_loop_of_links_is_refused_before_anything_is_stored(shop: Shop, option: str, said: str) -> None:
    loop = shop.project / "loop"
    loop.symlink_to(loop)
    refused = shop.run(option, str(loop), "hi")
    assert (refused.code, refused.out) == (1, "")
    assert said in refused.err
    assert shop.sessions() == []


def test_piped_input_is_added_below_the_message(shop: Shop) -> None:
    shop.run("read tides.py", stdin=b"and be quick\n")
    assert texts(shop, shop.sessions()[0]["id"], "user") == ["read tides.py\nand be quick"]


def test_piped_input_alone_is_the_message(shop: Shop) -> None:
    assert shop.run(stdin=b"read tides.py\n").code == 0
    assert texts(shop, shop.sessions()[0]["id"], "user") == ["read tides.py"]


@pytest.mark.parametrize(("more", "kinds"), [((), set()), (("--thinking",), {"reasoning"})])
def test_json_has_one_object_for_each_settled_part(shop: Shop, more: tuple[str, ...], kinds: set[str]) -> None:
    said = shop.run("--format", "json", *more, "read tides.py")
    lines = [json.loads(line) for line in said.out.splitlines()]
    [session] = shop.sessions()
    assert {one["type"] for one in lines} == {"step_start", "text", "tool_use", "step_finish"} | kinds
    assert {one["sessionID"] for one in lines} == {session["id"]}
    stored = {part["id"]: part for one in shop.messages(session["id"]) for part in one["parts"]}
    later = ("seq", "nth", "snapshot")  # A step is told when it begins, and its snapshot is taken meanwhile.
    for one in lines:
        assert isinstance(one["timestamp"], int)
        told = {key: value for key, value in one["part"].items() if key not in later}
        assert told == {key: value for key, value in stored[one["part"]["id"]].items() if key not in later}
    call = next(one["part"] for one in lines if one["type"] == "tool_use")
    assert (call["tool"], call["state"]["status"]) == ("read", "completed")


def test_json_everywhere_means_json_lines_here(shop: Shop) -> None:
    said = shop.run("--json", "read tides.py")
    assert json.loads(said.out.splitlines()[0])["type"] == "step_start"


def test_thoughts_are_told_when_asked_for(shop: Shop) -> None:
    assert "┊" not in shop.run("read tides.py").err
    assert "┊ " in shop.run("--thinking", "read tides.py").err


@pytest.mark.parametrize(
    ("given", "title"),
    [("Tides", "Tides"), ("", "read tides.py and then tell me all that you find…"), (None, None)],
)
def test_a_session_is_titled_as_asked_else_by_the_model(shop: Shop, given: str | None, title: str | None) -> None:
    shop.run(
        *(["--title", given] if given is not None else []), "read tides.py and then tell me all that you find in it"
    )
    shown = shop.sessions()[0]["title"]
    assert shown == title if title is not None else not shown.startswith("New session")


def test_a_file_is_attached_with_its_lines(shop: Shop) -> None:
    assert shop.run("-f", "tides.py:1-2", "-f", "README.md", "list the files").code == 0
    [user, *_] = shop.messages(shop.sessions()[0]["id"])
    assert [part["filename"] for part in user["parts"] if part["type"] == "file"] == ["tides.py", "README.md"]


@pytest.mark.parametrize(
    ("given", "mime", "first", "last"),
    [
        ("a.py", "text/plain", None, None),
        ("a.py:1", "text/plain", 1, None),
        ("a.py:1-1", "text/plain", 1, 1),
        ("a.py:1-9", "text/plain", 1, 9),
        ("b.png", "image/png", None, None),
        ("c.pdf", "application/pdf", None, None),
        ("odd:7", "text/plain", None, None),
        (".", "application/x-directory", None, None),
    ],
)
def test_a_file_is_named_by_its_path_and_perhaps_by_lines(
    tmp_path: Path, given: str, mime: str, first: int | None, last: int | None
) -> None:
    for name in ("a.py", "b.png", "c.pdf", "odd:7"):
        (tmp_path / name).write_bytes(b"x\n")
    name = given if given == "odd:7" else given.partition(":")[0]
    assert attachment(given, tmp_path) == ((tmp_path / name).resolve(), mime, first, last)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"nowhere\.py:1-2"):
        attachment("nowhere.py:1-2", tmp_path)


def test_a_file_whose_content_cannot_be_sent_is_reported_before_the_run(shop: Shop) -> None:
    (shop.project / "tides.bin").write_bytes(bytes(range(256)))
    (shop.project / "tides.dat").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    os.mkfifo(shop.project / "pipe")
    said = shop.run("-f", "tides.bin", "-f", "tides.py", "list the files")
    first, *others = said.err.splitlines()
    assert first == f"! {shop.project / 'tides.bin'} is a binary file, so its content cannot be sent; " + (
        "the model only gets its name"
    )
    assert not [line for line in others if line.startswith("!")]
    assert attachment("tides.dat", shop.project).warning is None
    assert "not a regular file" in (attachment("pipe", shop.project).warning or "")


def test_a_variant_that_the_model_lacks_is_refused_with_those_it_has(shop: Shop) -> None:
    named = {"models": {"tide": {"variants": {"low": {}, "high": {}}}, "moon": {}}, "options": {"baseURL": "http://x"}}
    shop.configure(model="acme/tide", provider={"acme": {"api": "openai-chat", **named}})
    for words in (["run", "--variant", "huge", "hi"], ["run", "-m", "acme/tide", "--variant", "huge", "hi"]):
        refused = shop.process(*words)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "acme/tide has no variant 'huge'; its variants are: low, high" in refused.stderr
    assert shop.sessions() == []
    # What is known of this model names no variants, so that there may be some.
    assert shop.run("--variant", "high", "list the files").code == 0


def test_where_nobody_can_be_asked_a_call_is_refused_with_a_hint(shop: Shop) -> None:
    shop.configure(permission={"bash": "ask"})
    refused = shop.run("run `echo hi > made.txt`")
    assert refused.code == 1
    assert '"permission": {"bash": {"echo hi > made.txt": "allow"}} in turnkeeper.json' in refused.err
    assert "--auto" in refused.err
    assert "$ echo hi > made.txt  refused" in refused.err
    assert "■ stopped, because a call was refused" in refused.err
    assert not (shop.project / "made.txt").exists()


def test_auto_allows_what_would_be_asked_but_nothing_that_is_denied(shop: Shop) -> None:
    shop.configure(permission={"bash": {"*": "ask", "rm *": "deny"}})
    assert shop.run("--auto", "run `echo hi > made.txt`").code == 0
    assert (shop.project / "made.txt").exists()
    shop.run("--auto", "run `rm made.txt`")
    assert (shop.project / "made.txt").exists()


def test_a_message_that_begins_with_a_mark_is_a_command_of_the_user(shop: Shop) -> None:
    said = shop.run("!echo hi > made.txt; echo done")
    assert said.code == 0, said.err
    assert (shop.project / "made.txt").read_text() == "hi\n"
    assert "$ echo hi > made.txt; echo done" in said.err
    assert "    │ done" in said.err
    assert shop.run("-c", "read made.txt").code == 0
    assert len(shop.sessions()) == 1


def test_the_agent_of_a_session_holds_until_another_is_named(shop: Shop) -> None:
    made = json.loads(shop.process("session", "create", "--agent", "plan", "--json").stdout)["id"]
    asked = "replace `100` with `60` in tides.py"
    refused = shop.process("run", "-m", "offline/tk-1", "-s", made, asked)
    assert "> plan · offline/tk-1" in refused.stderr
    assert "100" in (shop.project / "tides.py").read_text()
    assert shop.sessions()[0]["agent"] == "plan"
    shop.process("run", "-m", "offline/tk-1", "-s", made, "!true")
    assert [one["info"]["agent"] for one in shop.messages(made)] == ["plan"] * len(shop.messages(made))
    changed = shop.process("run", "-m", "offline/tk-1", "-s", made, "--agent", "build", asked)
    assert changed.returncode == 0
    assert "60" in (shop.project / "tides.py").read_text()
    assert shop.sessions()[0]["agent"] == "build"


@pytest.mark.parametrize("config", [{}, {"model": "anthropic/claude-sonnet-4-5"}])
def test_a_missing_key_is_found_before_anything_is_stored(shop: Shop, config: dict[str, object]) -> None:
    shop.configure(**config)
    named = () if config else ("-m", "anthropic/claude-sonnet-4-5")
    refused = shop.process("run", *named, "hello")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "turnkeeper auth login anthropic" in refused.stderr
    assert shop.sessions() == []
    shop.configure()
    shop.run("hello")
    refused = shop.process("run", "-c", "-m", "anthropic/claude-sonnet-4-5", "and now?")
    assert "turnkeeper auth login anthropic" in refused.stderr
    [session] = shop.sessions()
    assert texts(shop, session["id"], "user") == ["hello"]
    # A command of the user's asks no model.
    assert shop.process("run", "-c", "-m", "anthropic/claude-sonnet-4-5", "!true").returncode == 0


def test_without_a_model_the_offline_one_answers_and_says_so(shop: Shop) -> None:
    run = shop.process("run", "read tides.py")
    assert (run.returncode, run.stderr.count(NOTE)) == (0, 1)
    assert "auth login PROVIDER" in run.stderr
    assert NOTE not in shop.run("read tides.py").err


@pytest.mark.parametrize("form", ["default", "json"])
def test_the_work_goes_on_when_nobody_reads_any_more(shop: Shop, form: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = ["run", "--format", form, "read tides.py, then run `echo hi > made.txt`"]
    run = subprocess.run(
        command(*words),
        env=shop.environ(),
        cwd=shop.project,
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert run.returncode == 0, run.stderr
    assert b"Traceback" not in run.stderr
    assert (shop.project / "made.txt").exists()


def test_a_prompt_for_a_session_that_another_process_runs_is_left_with_it(shop: Shop) -> None:
    from cli_store import api
    from steps import busy_here

    session_id = api(shop.data, busy_here)
    run = shop.process("run", "-s", session_id, "go on")
    assert run.returncode == 0
    assert "takes the prompt up at its next step" in run.stderr
    [report] = tk(shop.data, "session", "status", "--json").json["items"]
    assert [one["text"] for one in report["waiting"]] == ["go on"]


def test_prompts_that_two_processes_send_at_once_are_both_taken_up(shop: Shop) -> None:
    assert shop.process("run", "list the files").returncode == 0
    for pair in range(3):
        both = [
            subprocess.Popen(
                command("run", "-c", f"write made{pair}{number}.txt: hello"),
                env=shop.environ(),
                cwd=shop.project,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(2)
        ]
        ends = [(*one.communicate(timeout=120), one.returncode) for one in both]
        assert [code for _, _, code in ends] == [0, 0], ends
        assert tk(shop.data, "session", "status", "--json").json["items"] == [], ends
        made = [(shop.project / f"made{pair}{number}.txt").exists() for number in range(2)]
        assert made == [True, True], ends


def test_a_models_command_does_not_see_the_keys_of_providers(shop: Shop) -> None:
    prompt = "run `echo ${ANTHROPIC_API_KEY:-none} ${OPENCODE_SERVER_PASSWORD:-none} $PLAIN`"
    given = {"ANTHROPIC_API_KEY": "secret-key", "OPENCODE_SERVER_PASSWORD": "secret-word", "PLAIN": "plain"}
    done = shop.process("run", "-m", "offline/tk-1", prompt, **given)
    assert "none none plain" in done.stdout
    assert "secret" not in done.stdout + done.stderr


def test_what_is_printed_to_a_pipe_is_not_shortened(shop: Shop) -> None:
    long = "echo " + "a" * 150 + " the useful end"
    done = shop.process("run", "-m", "offline/tk-1", f"run `{long}`")
    assert done.stderr.count("the useful end") == 2
    [session] = shop.sessions()
    shown = shop.process("session", "messages", session["id"]).stdout
    # The prompt, the call and its output. The model's own words are not ours to count.
    assert shown.count("the useful end") >= 3
