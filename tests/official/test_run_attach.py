"""The real ``opencode run --attach``: prompts from the command line, answered by our server."""

import json
from pathlib import Path
from typing import Any

import httpx2
from clients import Served, needs, opencode, serving

pytestmark = needs(program=True)


def run(served: Served, project: Path, home: Path, *words: str) -> str:
    """What it prints, if it ends well."""
    done = opencode(home, "run", "--attach", served.url, "--dir", str(project), *words, cwd=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout, f"nothing was printed but {done.stderr!r}"
    return done.stdout


def sessions(served: Served, project: Path, **given: Any) -> Any:
    """The project's sessions, the newest first."""
    return httpx2.get(f"{served.url}/session", params={"directory": str(project)}, **given).json()


def test_a_prompt_is_answered_and_continued_and_forked(served: Served, project: Path, home: Path) -> None:
    first = run(served, project, home, "--title", "From the command line", "[[text Said by the script.]]")
    assert first.strip() == "Said by the script."
    (made,) = sessions(served, project)
    assert (made["title"], made["directory"]) == ("From the command line", str(project))

    assert run(served, project, home, "-c", "[[text Said afterwards.]]").strip() == "Said afterwards."
    assert [one["id"] for one in sessions(served, project)] == [made["id"]]

    forked = run(served, project, home, "-s", made["id"], "--fork", "[[text Said elsewhere.]]")
    assert forked.strip() == "Said elsewhere."
    fork = next(one for one in sessions(served, project) if one["id"] != made["id"])
    assert fork["title"] == "From the command line (fork #1)"
    told = httpx2.get(f"{served.url}/session/{fork['id']}/message").text
    assert all(words in told for words in ("Said by the script.", "Said afterwards.", "Said elsewhere."))


def test_tools_are_told_as_they_run(served: Served, project: Path, home: Path) -> None:
    words = "[[read opencode.json]] [[bash echo it-ran]] [[text All done.]]"
    told = [json.loads(line) for line in run(served, project, home, "--auto", "--format", "json", words).splitlines()]
    tools = [one["part"] for one in told if one["type"] == "tool_use"]
    assert [(one["tool"], one["state"]["status"]) for one in tools] == [("read", "completed"), ("bash", "completed")]
    assert tools[1]["state"]["output"] == "it-ran"
    assert [one["part"]["text"] for one in told if one["type"] == "text"] == ["All done."]
    assert [one["type"] for one in told][-1] == "step_finish"


def test_a_session_that_does_not_exist_is_said(served: Served, project: Path, home: Path) -> None:
    words = ("run", "--attach", served.url, "--dir", str(project), "-s", "ses_e1df8f49effeNs2mOlc4j09VMJ", "Hello")
    done = opencode(home, *words, cwd=home)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Session not found" in done.stderr


def test_a_password_is_asked_for(provider: str, project: Path, home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with serving(elsewhere, elsewhere, provider, OPENCODE_SERVER_PASSWORD="open-sesame") as guarded:
        assert run(guarded, project, home, "-p", "open-sesame", "[[text Come in.]]").strip() == "Come in."
        words = ("run", "--attach", guarded.url, "--dir", str(project), "-p", "wrong", "[[text Come in.]]")
        refused = opencode(home, *words, cwd=home)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert sessions(guarded, project, auth=("opencode", "open-sesame"))[1:] == []  # The refused one made none.
