"""Plain requests are understood as tasks; what is quoted stays as it is; what is not understood is said to be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.providers.offline.words import EXAMPLES, understood


def tasks(text: str) -> list[list[tuple[str, dict[str, object]]]]:
    return [[(task.tool, dict(task.arguments)) for task in step] for step in understood(text).steps]


def bash(command: str) -> tuple[str, dict[str, object]]:
    return ("bash", {"command": command, "description": "Run it"})


def read(path: str) -> tuple[str, dict[str, object]]:
    return ("read", {"filePath": path})


def write(path: str, content: str) -> tuple[str, dict[str, object]]:
    return ("write", {"filePath": path, "content": content})


def edit(path: str, old: str, new: str, **more: object) -> tuple[str, dict[str, object]]:
    return ("edit", {"filePath": path, "oldString": old, "newString": new, **more})


FILES = ("glob", {"pattern": "**/*"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("list the files", [[FILES]]),
        ("Please list all the files here.", [[FILES]]),
        ("what files are there?", [[FILES]]),
        ("ls", [[FILES]]),
        ("list files in src/", [[("glob", {"pattern": "**/*", "path": "src"})]]),
        ("read README.md", [[read("README.md")]]),
        ("show me the file src/a.py", [[read("src/a.py")]]),
        ("read Makefile", [[read("Makefile")]]),
        ("read a.py and b.py", [[read("a.py"), read("b.py")]]),
        ("read a.py, b.py, and c.py", [[read("a.py"), read("b.py"), read("c.py")]]),
        ("read @src/a.py and @b.py", [[read("src/a.py"), read("b.py")]]),
        ("change 1 to 2 in @n.txt", [[read("n.txt")], [edit("n.txt", "1", "2")]]),
        ("read my mind", []),
        ("write notes.txt: hello", [[write("notes.txt", "hello\n")]]),
        ("write notes.txt: two\nlines\n", [[write("notes.txt", "two\nlines\n")]]),
        ("write `a, then read b.md` to notes.txt", [[write("notes.txt", "a, then read b.md\n")]]),
        ("create a new file x.py with ```python\nprint(1)\n```", [[write("x.py", "print(1)\n")]]),
        ("make a file called a.txt containing the text: hi there", [[write("a.txt", "hi there\n")]]),
        ("replace a with b in c.txt", [[read("c.txt")], [edit("c.txt", "a", "b")]]),
        ('replace "two words" with "" in c.txt', [[read("c.txt")], [edit("c.txt", "two words", "")]]),
        (
            "replace all `x()` with `y()` in src/z.py",
            [[read("src/z.py")], [edit("src/z.py", "x()", "y()", replaceAll=True)]],
        ),
        ("change 1 to 2 in the file n.txt.", [[read("n.txt")], [edit("n.txt", "1", "2")]]),
        ("run `ls -l; echo a, then read b.py`", [[bash("ls -l; echo a, then read b.py")]]),
        ("run make test", [[bash("make test")]]),
        ("execute the command `true`", [[bash("true")]]),
        ("search for open( in src", [[("grep", {"pattern": "open\\(", "path": "src"})]]),
        ('search for "def main" in the code', [[("grep", {"pattern": "def main"})]]),
        ("search for /a+b/", [[("grep", {"pattern": "a+b"})]]),
        ("where is parse_input?", [[("grep", {"pattern": "parse_input"})]]),
        ("find all files named *.py", [[("glob", {"pattern": "*.py"})]]),
        ("list the files, then read a.md and then run `true`", [[FILES], [read("a.md")], [bash("true")]]),
        ("1. list the files\n2. read a.md\n3. run `true`", [[FILES], [read("a.md")], [bash("true")]]),
        ("List the files. Now read a.md.", [[FILES], [read("a.md")]]),
        ("write a.py: print('hi') then run `python a.py`", [[write("a.py", "print('hi')\n")], [bash("python a.py")]]),
        ("write a.md: list them\nrun fast\nread more.md", [[write("a.md", "list them\nrun fast\nread more.md\n")]]),
        ("1. write a.txt: hi\n2. run `cat a.txt`", [[write("a.txt", "hi\n")], [bash("cat a.txt")]]),
        ("read b.md and then write a.txt: x and read y", [[read("b.md")], [write("a.txt", "x and read y\n")]]),
        ("what is the meaning of life?", []),
        ("", []),
    ],
)
def test_a_plain_request_is_understood(text: str, expected: object) -> None:
    assert tasks(text) == expected


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("plan the release, the announcement and the party", ["the release", "the announcement", "the party"]),
        ("plan: read the code; write the tests", ["read the code", "write the tests"]),
        ("make a plan for 1) a, 2) b", ["a", "b"]),
        ("plan lunch", ["Look at what there is for: lunch", "Do it: lunch", "Check the result"]),
    ],
)
def test_a_plan_is_a_list_of_todos_of_which_the_first_is_begun(text: str, items: list[str]) -> None:
    [[(tool, arguments)]] = tasks(text)
    assert tool == "todowrite"
    assert arguments["todos"] == [
        {"content": item, "status": status, "priority": "medium", "id": str(number)}
        for number, (item, status) in enumerate(
            zip(items, ["in_progress", *["pending"] * len(items)], strict=False), start=1
        )
    ]


def test_what_is_missed_beside_what_is_understood_is_told() -> None:
    understanding = understood("read a.py and write the `great` novel")
    assert len(understanding.steps) == 1
    assert understanding.missed == ("write the `great` novel",)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_it_gives_is_understood_whole(example: str) -> None:
    understanding = understood(example)
    asked = [step for step in understanding.steps if all(task.is_asked for task in step)]
    assert (len(asked), understanding.missed) == (1, ())


def test_a_long_text_is_written_and_a_long_riddle_is_left_alone() -> None:
    content = "replace a with b in c and so on, " * 2_000
    assert tasks(f"write a.txt: {content}") == [[write("a.txt", f"{content.strip()}\n")]]
    assert tasks("replace " + "a with " * 20_000 + "b in c") == []


def test_only_what_is_quoted_may_be_long() -> None:
    command = "echo " * 1_000
    assert tasks(f"run `{command}`") == [[bash(command.strip())]]
    assert tasks(f"run {command}") == []


@given(st.text(max_size=200))
def test_no_text_upsets_it(text: str) -> None:
    understanding = understood(text)
    assert all(understanding.steps)
    assert understood(text) == understanding
