"""The shell parser finds every simple command, or says that it does not understand."""

import contextlib
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnkeeper.core.permission import Allow, Ask, Deny, decide
from turnkeeper.model.permission import Action, Rule
from turnkeeper.text.shell_fragments import fragments
from turnkeeper.text.shell_parse import parse
from turnkeeper.text.shell_rules import command_ask


def sources(command: str) -> list[str] | None:
    found = parse(command)
    return None if found is None else [simple.source for simple in found.commands]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls", ["ls"]),
        ("  ls -la  ", ["ls -la"]),
        ("", []),
        ("# nothing", []),
        ("ls # all", ["ls"]),
        ("echo a#b", ["echo a#b"]),
        ("a; b && c || d | e |& f & g\nh", list("abcdefgh")),
        ("echo 'a; b' \"c && d\" e\\;f", ["echo 'a; b' \"c && d\" e\\;f"]),
        ("echo a \\\n b", ["echo a \\\n b"]),
        ("(cd x; make) && ls", ["cd x", "make", "ls"]),
        ("{ a; b; } > out 2>&1", ["a", "b", "> out 2>&1"]),
        ("(a) > out", ["a", "> out"]),
        ("if a; then b; elif c; then d; else e; fi", list("abcde")),
        ("while read x; do rm $x; done < list", ["read x", "rm $x", "< list"]),
        ("for f in a b; do rm $f; done", ["rm $f"]),
        ("for f in $(find .); do\n  rm $f\ndone", ["find .", "rm $f"]),
        ("! a && time b", ["a", "b"]),
        ("echo $(a; b) `c | d`", ["echo $(a; b) `c | d`", "a", "b", "c", "d"]),
        ("echo `a \\`b\\``", ["echo `a \\`b\\``", "a `b`", "b"]),
        ('echo "x $(a "$(b)") y"', ['echo "x $(a "$(b)") y"', 'a "$(b)"', "b"]),
        ("echo ${x:-$(a)} $x $? $((1 + 2))", ["echo ${x:-$(a)} $x $? $((1 + 2))", "a"]),
        ("echo ${x} ${#x} ${x%.py} ${x/a/b}", ["echo ${x} ${#x} ${x%.py} ${x/a/b}"]),
        ("case x in x) rm y;; *) ls;; esac", ["rm y", "ls"]),
        ("f() { rm x; }; f", ["rm x", "f"]),
        ("function f { rm x; }", ["rm x"]),
        ("[[ -f x && -f $(y) ]] && [ -d z ]", ["[[ -f x && -f $(y) ]]", "y", "[ -d z ]"]),
        ("a=(1 $(b))", ["a=(1 $(b))", "b"]),
        ("export A=$(b) C; unset D", ["export A=$(b) C", "b", "unset D"]),
        (">/dev/null rm x", [">/dev/null rm x"]),
        ("a > b rm x", ["a > b rm x"]),
        ("a | b > out", ["a", "b", "> out"]),
        ("cat <<EOF > out && rm x\ntext\nEOF", ["cat <<EOF > out", "rm x"]),
        ("time -p rm x", ["rm x"]),
        ("diff <(a) >(b)", ["diff <(a) >(b)", "a", "b"]),
        ("echo $'it\\'s; a' $\"b\"", ["echo $'it\\'s; a' $\"b\""]),
        ("echo \"$'$(a)'\"", ["echo \"$'$(a)'\"", "a"]),
        ("A=1 B=$(a) cmd", ["A=1 B=$(a) cmd", "a"]),
        ("PATH=/x", ["PATH=/x"]),
        ("cat <<EOF\n$(a) b; c\nEOF\nd", ["cat <<EOF", "a", "d"]),
        ("cat <<'EOF' | e\n$(a) 'b\nEOF\nd", ["cat <<'EOF'", "e", "d"]),
        ("cat <<-X\n\tit's\n\tX\nd", ["cat <<-X", "d"]),
        (
            "git commit -m \"$(cat <<'EOF'\nFix; it's (done)\nEOF\n)\"",
            ["git commit -m \"$(cat <<'EOF'\nFix; it's (done)\nEOF\n)\"", "cat <<'EOF'"],
        ),
        ("a 2>/dev/null >>log <in &>all", ["a 2>/dev/null >>log <in &>all"]),
        ("echo if then done", ["echo if then done"]),
        ("echo '' \"\"", ["echo '' \"\""]),
        ("é 'a\u00a0b'; c", ["é 'a\u00a0b'", "c"]),
        ("echo [a] {b,c} *?", ["echo [a] {b,c} *?"]),
    ],
)
def test_every_simple_command_is_found(command: str, expected: list[str]) -> None:
    assert sources(command) == expected


@pytest.mark.parametrize(
    "command",
    [
        "echo 'a",
        'echo "a',
        "echo $(a",
        "echo `a",
        "echo ${a",
        "echo $((1)",
        "(a",
        "a)",
        "echo @(a|b)",
        "for x do rm y; done",
        "cat <<EOF\nnever ends",
        "cat <<$X\n$X\n",
        "cat <<A $(b\nc)\nA\n",
        "(a) b",
        "{ a; } b",
        "a >",
        "echo " + "$(" * 40 + "a" + ")" * 40,
        "echo " + "${x:-" * 5000 + "}" * 5000,
        "(" * 5000,
        "echo a\\\n#x; rm y",
        "r\\\nm x",
        "echo a\rrm",
        "ls\u00a0x",
        "coproc rm x",
        "cat <<A; echo $(\nA\nrm x\n)",
        "cat <<'A' 'B\nA\nrm x\n'",
        "echo $((a) | (rm b))",
    ],
)
def test_what_is_not_understood_is_said_to_be_so(command: str) -> None:
    assert sources(command) is None


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls ${x@P}", "${x@P}"),
        ("ls ${x:=a}$((x))", "$((x))"),
        ("echo $[x+1]", "$[x+1]"),
        ("ls ${!x}", "${!x}"),
        ("ls ${a[x]}", "${a[x]}"),
        ("ls $((x + 1))", "$((x + 1))"),
        ("ls $(((x)))", "$(((x)))"),
        ("((x++))", "((x++))"),
        ("echo \"${x:-'$(rm y)'}\"", "rm y"),
        ('ls "`rm y`"', "rm y"),
        ('cd "${x@P}"', "${x@P}"),
        ("pushd $X", "pushd $X"),
        ("for x in ${y@P}; do :; done", "${y@P}"),
    ],
)
def test_an_expansion_that_can_run_code_is_asked_about_by_itself(command: str, expected: str) -> None:
    assert expected in command_ask(command).patterns


WORDS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8), max_size=4)
COMMANDS = st.lists(
    st.builds(lambda name, words: shlex.join([name, *words]), st.sampled_from(["ls", "rm", "x-y"]), WORDS),
    min_size=1,
    max_size=5,
)


@given(COMMANDS, st.lists(st.sampled_from(["; ", " && ", "||", " | ", "\n", " & "]), min_size=5, max_size=5))
def test_quoted_words_never_hide_or_make_a_command(commands: list[str], separators: list[str]) -> None:
    text = commands[0] + "".join(map("".join, zip(separators, commands[1:], strict=False)))
    assert sources(text) == commands


@given(COMMANDS)
def test_words_mean_what_the_shell_makes_of_them(commands: list[str]) -> None:
    found = parse("; ".join(commands))
    assert found is not None
    assert [[word.value for word in simple.words] for simple in found.commands] == [
        shlex.split(command) for command in commands
    ]


@given(st.text("abc $(){}[]`'\"\\;&|<>\n#!*=\t01", max_size=40))
def test_any_text_is_scanned_or_given_up_and_a_plain_command_after_it_is_never_lost(text: str) -> None:
    found = sources(f"{text}\nrm marker")
    if found is None:
        assert any("rm marker" in piece for piece in fragments(f"{text}\nrm marker"))
    else:
        assert any("rm marker" in source for source in found)


NAMES = (
    "mk mk a x EOF $ ( ) { } ` ' \" \\ ; ;; & && | < << <<- <<< > # ! = == [ [[ ]] ] @P : - $( $(( )) ${ case in esac"
    " if then fi for do done function time"
)
TOKENS = st.sampled_from([*NAMES.split(), *[" "] * 12, *["\n"] * 4, "\t"])
STARTS = st.sampled_from(["\nmk\n", "; mk;", "$(mk)", "`mk`", "&& mk", "|mk|", " mk ", "\\\nmk", "\nEOF\nmk"])
# Nothing is on the path, and the functions cannot be replaced: a text can only run ``mk``, or write into its directory.
PROLOGUE = 'mk() { echo ran >> "$LOG"; }; a() { :; }; x() { :; }; readonly -f mk a x\n'


def finds_marker(command: str) -> bool:
    """Whether the parser gives up, or finds a command that is, or may turn out to be, ``mk``."""
    found = parse(command)
    return found is None or any(
        any(word.value == "mk" or word.is_dynamic for word in simple.words[:2])
        or (not simple.words and "mk" in simple.source)
        for simple in found.commands
    )


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.lists(TOKENS, max_size=8), start=STARTS, after=st.lists(TOKENS, max_size=4))
def test_a_command_that_bash_runs_is_never_hidden_by_the_text_around_it(
    before: list[str], start: str, after: list[str], tmp_path: Path
) -> None:
    command = "".join([*before, start, *after])
    log = tmp_path / "log"
    log.unlink(missing_ok=True)
    environ = {"PATH": "/nonexistent", "LOG": str(log)}
    bash = ["/bin/bash", "--norc", "-c", PROLOGUE + command]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(bash, cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=2)
    if log.exists():
        assert finds_marker(command)


class Told(NamedTuple):
    """What a command asks for, in short: paths that it writes begin with ``>``, paths that it reads with ``<``."""

    patterns: list[str]
    always: list[str]
    paths: list[str] = []
    computed: list[str] = []


def told(command: str) -> Told:
    asked = command_ask(command, {"HOME": "/home/ada"})
    paths = [f"{'>' if path.is_written else '<'}{path.path}" for path in asked.paths if path.is_certain]
    return Told(list(asked.patterns), list(asked.always), paths, list(asked.computed))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "git status && ls -la /etc | head -2",
            Told(["git status", "ls -la /etc", "head -2"], ["git status *", "ls *", "head *"]),
        ),
        ("npm run test -- -x", Told(["npm run test -- -x"], ["npm run test *"])),
        ("git remote add o u", Told(["git remote add o u"], ["git remote add *"])),
        ("aws s3 ls", Told(["aws s3 ls"], ["aws s3 ls *"])),
        ("make", Told(["make"], ["make"])),
        ("git -C x push", Told(["git -C x push"], ["git -C x push"])),
        ("env rm *", Told(["env rm *", "rm *"], ["env rm ?", "rm *"], [">."])),
        ("/usr/bin/sudo ls", Told(["/usr/bin/sudo ls", "sudo ls", "ls"], ["/usr/bin/sudo ls", "sudo ls", "ls *"])),
        ("LD_PRELOAD=x ls", Told(["LD_PRELOAD=x ls", "ls"], ["LD_PRELOAD=x ls", "ls *"])),
        ("$X y", Told(["$X y"], ["$X y"])),
        ("X=rm; $X y", Told(["X=rm", "$X y", "rm y"], ["X=rm", "$X y", "rm *"], [])),
        ("'git' status", Told(["'git' status", "git status"], ["'git' status", "git status *"])),
        ("git push '--force'", Told(["git push '--force'", "git push --force"], ["git push *"])),
        ("cd sub && make all", Told(["make all"], ["make all *"], ["<sub"])),
        ("cd", Told([], [], ["<~"])),
        ("cd a > b", Told(["cd a > b"], ["cd *"], [">b", "<a"])),
        ("cd a && cat ../b", Told(["cat ../b"], ["cat *"], ["<a", "<a/../b"])),
        ("cd a; cat ../b", Told(["cat ../b"], ["cat *"], ["<a", "<../b", "<a/../b"])),
        ("(cd a && ls) && cat ../b", Told(["ls", "cat ../b"], ["ls *", "cat *"], ["<a", "<../b"])),
        (
            "rm -rf ~/x '~/y' \"$HOME/z\" a/*.py $1",
            Told(
                ["rm -rf ~/x '~/y' \"$HOME/z\" a/*.py $1"],
                ["rm *"],
                [">~/x", ">./~/y", ">/home/ada/z", ">a/"],
                ["$1"],
            ),
        ),
        ("echo a > ../out 2>&1 < in", Told(["echo a > ../out 2>&1 < in"], ["echo *"], [">../out", "<in"])),
        ("ls; ls", Told(["ls"], ["ls *"])),
        ("sudo -u x rm y", Told(["sudo -u x rm y", "rm y"], ["sudo -u x rm y", "rm *"], [">y"])),
        ("sh -c 'rm y; ls'", Told(["sh -c 'rm y; ls'", "rm y", "ls"], ["sh -c 'rm y; ls'", "rm *", "ls *"], [">y"])),
        ('sh -c "$X"', Told(['sh -c "$X"', '"$X"'], ['sh -c "$X"', '"$X"'], [], ['"$X"'])),
        ("find d -delete", Told(["find d -delete", "rm d"], ["find *", "rm d"], [">d"])),
        ("curl u | sh", Told(["curl u", "sh # curl u | sh"], ["curl *", "sh # curl u | sh"])),
        ("ls | xargs rm", Told(["ls", "xargs rm", "rm"], ["ls *", "xargs *", "rm *"], [], ["rm"])),
        ("cp a b d", Told(["cp a b d"], ["cp *"], ["<a", "<b", ">d"])),
        ("D=x; rm $D/y", Told(["D=x", "rm $D/y"], ["D=x", "rm *"], [">x/y"])),
        ("rm $D/y; D=x", Told(["rm $D/y", "D=x"], ["rm *", "D=x"], [], ["$D/y"])),
        ("read D; rm $D", Told(["read D", "rm $D"], ["read *", "rm *"], [], ["$D"])),
        ("cat {a,../b}/c", Told(["cat {a,../b}/c"], ["cat *"], ["<a/c", "<../b/c"])),
        ('cat $"../y"', Told(['cat $"../y"'], ["cat *"], ["<../y"])),
        ('ls >$"../y" 2>&-', Told(['ls >$"../y" 2>&-'], ["ls *"], [">../y"])),
        ("cp a{,.bak}", Told(["cp a{,.bak}"], ["cp *"], ["<a", ">a.bak"])),
        ("rm .gi{t..t}/x{8..10}", Told(["rm .gi{t..t}/x{8..10}"], ["rm *"], [">.git/x8", ">.git/x9", ">.git/x10"])),
        ("rm x{1..99}", Told(["rm x{1..99}"], ["rm *"], [">x"])),
        ("r{m,} ../y", Told(["r{m,} ../y", "rm r ../y"], ["r{m,} ../y", "rm *"], [">r", ">../y"])),
        ("while :; do cd ..; done", Told([":"], [": *"], [], [".."])),
    ],
)
def test_a_command_asks_for_its_parts_and_an_approval_covers_no_more_than_it_names(
    command: str, expected: Told
) -> None:
    assert told(command) == expected


def rules(*pairs: tuple[str, Action]) -> tuple[Rule, ...]:
    return tuple(Rule(permission="bash", pattern=pattern, action=action) for pattern, action in pairs)


@pytest.mark.parametrize(
    "command",
    [
        "git status; case x in x) rm y;; esac",
        "git log 'x; rm y",
        "git f() { rm y; }",
        "git log >f $ \nrm y",
        "git log; export $ \nrm y",
    ],
)
def test_what_is_not_understood_is_not_let_through_by_its_first_word(command: str) -> None:
    asked = command_ask(command)
    assert isinstance(decide(rules(("*", "ask"), ("git *", "allow")), "bash", asked.patterns), Ask)
    assert isinstance(decide(rules(("*", "allow"), ("rm *", "deny")), "bash", asked.patterns), Deny)


@pytest.mark.parametrize(
    "command",
    [
        "r{m,} y",
        "env {,rm} y",
        "env {rm,y}",
        "timeout -k 5 10 {rm,-f,y}",
        "find . -exec {rm,-f} {} +",
        "sh {-c,'rm y'}",
        "sh -{e,c} 'rm y'",
        "r{m..m} y",
        "rm$x y",
        '$"rm" y',
        "${x}'rm' y",
        "$(true)rm y",
    ],
)
def test_no_command_hides_in_braces_or_beside_what_is_empty(command: str) -> None:
    asked = command_ask(command)
    assert isinstance(decide(rules(("*", "allow"), ("rm *", "deny")), "bash", asked.patterns), Deny)


@pytest.mark.parametrize(
    "command",
    [
        "ls | sort | head\nrm y && ls",
        "ls | sort | head\nrm y||ls",
        "ls | sort | head >f\nrm y && ls",
        "ls | sort | head <<<f\nrm y && ls",
        "ls | sort | >f head\nrm y && ls",
        "ls | sort | A=1\nrm y && ls",
    ],
)
def test_a_line_break_behind_a_pipe_ends_its_command(command: str) -> None:
    asked = command_ask(command)
    assert isinstance(decide(rules(("*", "allow"), ("rm *", "deny")), "bash", asked.patterns), Deny)


def test_lines_behind_a_pipe_are_understood() -> None:
    assert sources("ls | sort | head -3\nmake && ls\nls | sort | head\nmake||ls") == [
        *("ls", "sort", "head -3", "make", "ls", "ls", "sort", "head", "make", "ls")
    ]


@pytest.mark.parametrize(
    "command",
    [
        "{rm,-f,y}",
        "{r,x}m y",
        "{,rm} y",
        "r\\\nm y",
        "{fd}>f rm y",
        "true {fd}>f; 'rm' y",
        "true {fd}>f; /bin/rm y",
        "true {fd}>f; A=1 rm y",
        "true {fd}>f; sudo rm y",
        "true {fd}>f; ls | xargs rm",
    ],
)
def test_no_command_hides_in_a_text_that_is_not_understood(command: str) -> None:
    asked = command_ask(command)
    assert asked.computed == (command,)
    assert isinstance(decide(rules(("*", "allow"), ("rm *", "deny")), "bash", asked.patterns), Deny)


@pytest.mark.parametrize(
    "command",
    ["{,rm} y", "{fd}>f rm y", "nice {fd}<<E rm y\nE", "{ba,}sh -c 'rm y'", "sh {-c,'rm y'" + ",x" * 99 + "}"],
)
def test_braces_that_are_not_understood_are_asked_about_as_they_are_written(command: str) -> None:
    assert command_ask(command).computed == (command,)


@pytest.mark.parametrize(
    ("command", "computed"),
    [
        ("a0=x;" + "".join(f"a{n + 1}=$a{n}$a{n};" for n in range(40)) + "cat $a40", "$a40"),
        ("a0=x;" + "".join(f"a{n + 1}=$a{n};" for n in range(1000)) + "cat $a1000", "$a1000"),
        ("cat " + "{" * 5000, "{" * 5000),
        ("cat " + "{a,b}" * 2000, "cat " + "{a,b}" * 2000),
        ("env " * 1000 + "ls", ("env " * 1000 + "ls")),
        ("poetry run " * 500 + "ls", "poetry run " * 500 + "ls"),
    ],
    ids=["doubled", "chained", "open braces", "braces", "prefixes", "runners"],
)
def test_a_text_that_would_take_long_to_understand_is_asked_about_as_it_is_written(command: str, computed: str) -> None:
    assert command_ask(command).computed == (computed,)


def test_commands_in_commands_in_commands_are_followed_only_so_far() -> None:
    asked = command_ask("eval " * 2000 + "rm x")
    assert isinstance(decide(rules(("*", "allow"), ("*rm *", "deny")), "bash", asked.patterns), Deny)
    assert asked.computed


def test_an_approved_command_is_not_asked_about_again() -> None:
    for command in ["git status -s && rm *", "case x in x) rm y;; esac", "git -C a* push", "FOO=* make x?"]:
        asked = command_ask(command)
        approvals = rules(*((pattern, "allow") for pattern in asked.always))
        assert decide((), "bash", asked.patterns, approvals) == Allow()
