"""Who may write what: the sandbox follows the mode, the agent's rules and what the user approved."""

import pytest

from turnkeeper.core.sandbox import (
    Confinement,
    SandboxPlaces,
    SandboxPolicy,
    confinement,
    directory_of,
    refusal_note,
)
from turnkeeper.model.config import SandboxMode
from turnkeeper.model.permission import Action, Rule

PLACES = SandboxPlaces(caches=("/h/.cache",), devices=("/dev/null",), system=("/usr",), protected=("/h/tk",))
POLICY = SandboxPolicy(mode="workspace", project=("/p",), write=("/w",), places=PLACES, home="/h")


def rule(pattern: str, action: Action, permission: str = "external_directory") -> Rule:
    return Rule(permission=permission, pattern=pattern, action=action)


ALLOW = rule("*", "allow", "*")


def made(*rules: Rule, approvals: tuple[Rule, ...] = (), mode: SandboxMode = "workspace") -> Confinement:
    confined = confinement(POLICY.but(mode=mode), (ALLOW, *rules), approvals, "/t")
    assert confined is not None
    return confined


def test_a_workspace_is_the_project_its_temporary_directory_caches_and_configured_paths() -> None:
    assert made() == Confinement(
        mode="workspace",
        write=("/p", "/t", "/w", "/h/.cache"),
        devices=("/dev/null",),
        protected=("/h/tk",),
        needed=("/p", "/t", "/w", "/usr", "/h/.cache"),
        described=("/p", "/t", "/w"),
        temporary="/t",
    )


def test_a_sandbox_that_is_off_confines_nothing() -> None:
    assert confinement(POLICY.but(mode="off"), (ALLOW,)) is None


@pytest.mark.parametrize(
    ("rules", "mode", "expected"),
    [
        ([], "workspace", ("workspace", False)),
        ([], "read-only", ("read-only", False)),
        ([rule("*", "deny", "edit")], "workspace", ("read-only", True)),
        ([rule("*", "deny", "*")], "workspace", ("read-only", True)),
        ([rule("*", "deny", "edit"), rule("*.md", "allow", "edit")], "workspace", ("read-only", True)),
        ([rule("*.lock", "deny", "edit")], "workspace", ("workspace", False)),
        ([rule("*", "ask", "edit")], "workspace", ("workspace", False)),
    ],
)
def test_an_agent_that_may_not_edit_has_commands_that_only_read(
    rules: list[Rule], mode: SandboxMode, expected: tuple[str, bool]
) -> None:
    confined = made(*rules, mode=mode)
    assert (confined.mode, confined.is_by_rule) == expected
    assert bool(confined.write) is (expected[0] == "workspace")


def test_rules_allow_no_directory_and_approvals_do() -> None:
    assert "/x" not in made(rule("/x/*", "allow")).write
    assert "/x" in made(approvals=(rule("/x/*", "allow"),)).write
    assert "/x" not in made(approvals=(rule("/x/*", "allow", "edit"),)).write


@pytest.mark.parametrize(
    ("pattern", "directory"),
    [
        ("/a/b/*", "/a/b"),
        ("/a/b/**", "/a/b"),
        ("/home/ada/x/*", "/home/ada/x"),
        ("/a/b", None),
        ("*", None),
        ("/*", None),
        ("/home/*", None),
        ("/home/ada/*", None),
        ("/a/*/c/*", None),
        ("a/*", None),
    ],
)
def test_a_pattern_names_a_directory_or_none(pattern: str, directory: str | None) -> None:
    assert directory_of(pattern, "/home/ada") == directory


def test_a_denied_outside_limits_what_is_read() -> None:
    assert made().read is None
    assert made(rule("*", "deny")).read == ("/p", "/t", "/w", "/usr", "/h/.cache")
    assert made(rule("*", "deny"), rule("*", "ask")).read is None


def test_a_denied_directory_is_hidden_unless_it_is_allowed_later_or_holds_the_project() -> None:
    assert made(rule("/s/*", "deny")).hidden == ("/s",)
    assert made(rule("/s/*", "deny"), rule("/s/*", "allow")).hidden == ()
    assert made(rule("/p/*", "deny")).hidden == ()


def test_what_the_user_has_just_allowed_is_added_but_never_to_write_in_read_only_mode() -> None:
    assert made().also(["/x", "/p"]).write == (*made().write, "/x")
    reading = made(rule("*", "deny"), mode="read-only")
    assert (reading.also(["/x"]).write, reading.also(["/x"]).read) == ((), (*(reading.read or ()), "/x"))


@pytest.mark.parametrize(
    ("output", "exit_code", "is_noted"),
    [
        ("sh: cannot create /x: Permission denied\n", 2, True),
        ("OSError: [Errno 30] Read-only file system", 1, True),
        ("Error: EACCES: permission denied, open '/x'", 1, True),
        ("kill: Operation not permitted", 1, True),
        ('sudo: The "no new privileges" flag is set', 1, True),
        ("mv: Invalid cross-device link", 1, True),
        ("Permission denied", 0, False),
        ("Permission denied", None, False),
        ("Permission denied", -9, False),
        ("No such file or directory", 1, False),
        ("curl: (6) Could not resolve host: example.org", 6, False),
    ],
)
def test_a_failure_that_looks_like_a_refusal_is_explained(output: str, exit_code: int | None, is_noted: bool) -> None:
    assert (refusal_note(made(), output, exit_code) is not None) is is_noted


def test_a_note_says_what_is_allowed_and_what_can_be_done() -> None:
    assert refusal_note(made(), "Permission denied", 1) == (
        "[the sandbox may be the cause (mode workspace: writable are /p, /t, /w); "
        "repeat the call with outside: true to run the command outside the sandbox; the user is asked]"
    )
    reading = made(rule("*", "deny", "edit"), rule("*", "deny"))
    assert refusal_note(reading, "Permission denied", 1) == (
        "[the sandbox may be the cause (mode read-only: nothing is writable; files outside the project are not "
        "readable); this agent may not change anything, so do without]"
    )
    unconnected = made().but(network=False)
    assert "there is no network" in (refusal_note(unconnected, "curl: (6) Could not resolve host: x", 6) or "")
