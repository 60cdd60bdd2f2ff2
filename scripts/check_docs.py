"""Check the project's documents against each other and against the code; exit 1 and name every problem.

Run by ``make check``. Each check is one function from the project's root to a list of problems.
A page under ``docs/reference`` is held against the code by one row in REFERENCES.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

STANDING = ("README.md", "CONTEXT.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE")
ADR_HEADINGS = ("## Context", "## Decision", "## Consequence")

# Names that say nothing and notes that promise: no module may hold them, whatever the glossary says.
NEVER = {
    "TODO": "do it, or open an issue",
    "FIXME": "do it, or open an issue",
    "XXX": "do it, or open an issue",
    "Manager": "name what it does",
    "Helper": "name what it does",
    "utils": "name what it is about",
}

# Every tracked text file is looked through for these. They are patterns, so this file does not match itself.
UNWANTED = {
    "a path of one machine": re.compile(r"(?<![\w.~-])/(?:work|root|home/(?!(?:user|ada|me)\b)\w+)/"),
    "a registry address": re.compile(
        r"https?://[^\s)\"'>]*(?:/simple\b|pypi\.|pythonhosted\.|artifactory|nexus\b|npmjs\.|/pypi/)"
    ),
    "backticks in double quotes, which the reader's shell runs": re.compile(r"turnkeeper [a-z][^\"`\n]*\"[^\"`\n]*`"),
}


# --- What the documents say ------------------------------------------------------------------------------


class Term(NamedTuple):
    """One row of the glossary; ``refused`` are its avoid-words set as `code`, which no module may use."""

    word: str
    usual: str
    meaning: str
    refused: tuple[str, ...]


def glossary(context: str) -> list[Term]:
    """The terms of CONTEXT.md: table rows whose first cell is bold, with a usual term, a meaning and words to avoid."""
    terms = []
    for line in context.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if line.startswith("| **"):
            usual, meaning, avoid = (*cells[1:], "", "", "")[:3]
            refused = tuple(re.findall(r"`([^`]+)`", avoid))
            terms.append(Term(cells[0].replace("*", ""), usual, meaning, refused))
    return terms


def prose(markdown: str) -> str:
    """A page without its code, in which brackets and hashes mean something else."""
    without_blocks = re.sub(r"^( *)(```|~~~).*?^\1\2[ \t]*$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]+`", "", without_blocks)


def links(markdown: str) -> Iterator[str]:
    """The targets of a page's links and pictures, those in the code left out."""
    text = prose(markdown)
    yield from re.findall(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", text)
    yield from re.findall(r"<(?:img|a)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"", text)


def anchors(markdown: str) -> set[str]:
    """The fragments that may follow ``#`` in a link to this page, as code hosts derive them from headings."""
    without_blocks = re.sub(r"^( *)(```|~~~).*?^\1\2[ \t]*$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", without_blocks, flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (candidate := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(candidate)
    return found


# --- What the code says ----------------------------------------------------------------------------------


def events(root: Path) -> list[str]:
    """The event types: the members of the union named Event in model/event.py."""
    module = root / "src/turnkeeper/model/event.py"
    if not module.exists():
        return []
    for node in ast.parse(module.read_text("utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="Event")], value=union):
                return members(union)
            case ast.AnnAssign(target=ast.Name(id="Event"), value=ast.expr() as union):
                return members(union)
    return ["(model/event.py declares no union named Event)"]


def members(union: ast.expr) -> list[str]:
    """The names joined by ``|`` (or inside ``Union[...]``)."""
    return [node.id for node in ast.walk(union) if isinstance(node, ast.Name) and node.id != "Union"]


def environment(root: Path) -> list[str]:
    """The environment variables the program knows."""
    found: set[str] = set()
    for file in sources(root):
        found.update(re.findall(r"\bTURNKEEPER_[A-Z][A-Z_]*[A-Z]\b", file.read_text("utf-8")))
    return sorted(found)


def commands(root: Path) -> list[str]:
    """The commands as a person types them (``session list``), asked of the program itself."""
    if not (root / "src/turnkeeper/cli/commands.py").exists():
        return []
    walk = (
        "from turnkeeper.cli.commands import app\n"
        "def walk(app, path):\n"
        "    names = [n for n in app if not n.startswith('-')]\n"
        "    for name in names:\n"
        "        walk(app[name], [*path, name])\n"
        "    if not names and path:\n"
        "        print(' '.join(path))\n"
        "walk(app, [])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    run = subprocess.run([sys.executable, "-c", walk], env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        return [f"(the program does not list its commands: {run.stderr.strip().splitlines()[-1]})"]
    return run.stdout.splitlines()


def notifications(root: Path) -> list[str]:
    """What subscribers may hear: the dotted names in the two modules that make notifications."""
    found: set[str] = set()
    for name in ("core/notify.py", "model/notification.py"):
        file = root / "src/turnkeeper" / name
        if file.exists():
            found.update(re.findall(r'"((?:session|message|todo)(?:\.[a-z]+)+)"', file.read_text("utf-8")))
    return sorted(found)


def config_keys(root: Path) -> list[str]:
    """The settings as a file spells them, ``*`` for a name and ``[]`` for an entry: ``provider.*.options.apiKey``."""
    modules = [
        root / f"src/turnkeeper/model/{name}.py" for name in ("provider_config", "mcp_config", "tool_config", "config")
    ]
    parsed = [ast.parse(module.read_text("utf-8")) for module in modules if module.exists()]
    classes = {node.name: node for module in parsed for node in module.body if isinstance(node, ast.ClassDef)}
    if "Config" not in classes:
        return []

    def keys(name: str, above: str) -> Iterator[str]:
        for base in classes[name].bases:
            if isinstance(base, ast.Name) and base.id in classes:
                yield from keys(base.id, above)
        for node in classes[name].body:
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            renamed = re.search(r"name='([^']+)'", ast.unparse(node.value)) if node.value else None
            key = above + (renamed[1] if renamed else node.target.id)
            inner = [one.id for one in ast.walk(node.annotation) if isinstance(one, ast.Name) and one.id in classes]
            kind = ast.unparse(node.annotation)
            if "$" not in key:
                yield key
            for one in inner:
                yield from keys(one, f"{key}{'.*' if 'dict[' in kind else '[]' if 'tuple' in kind else ''}.")

    return list(keys("Config", ""))


def tools(root: Path) -> list[str]:
    """The built-in tools: the keys of the table in tools/__init__.py."""
    module = root / "src/turnkeeper/tools/__init__.py"
    table = re.search(r"^BUILT_IN\b.*?= \{(.*?)^\}", module.read_text("utf-8") if module.exists() else "", re.S | re.M)
    return re.findall(r'"([^"]+)":', table[1]) if table else []


def protocols(root: Path) -> list[str]:
    """The wire protocols: the keys of the table in providers/__init__.py."""
    module = root / "src/turnkeeper/providers/__init__.py"
    table = re.search(r"^PROVIDERS\b.*?= \{(.*?)^\}", module.read_text("utf-8") if module.exists() else "", re.S | re.M)
    return re.findall(r'"([^"]+)":', table[1]) if table else []


class Reference(NamedTuple):
    """A page that must hold every name of its kind, in code marks; ``only`` those may begin a row of its tables."""

    page: str
    kind: str
    names: Callable[[Path], list[str]]
    only: bool = False


REFERENCES = (
    Reference("docs/reference/events.md", "event", events, only=True),
    Reference("docs/reference/notifications.md", "notification", notifications, only=True),
    Reference("docs/reference/environment.md", "environment variable", environment),
    Reference("docs/reference/commands.md", "command", commands),
    Reference("docs/reference/config.md", "setting", config_keys, only=True),
    Reference("docs/reference/providers.md", "protocol", protocols),
    Reference("docs/reference/tools.md", "tool", tools),
)


# --- The checks ------------------------------------------------------------------------------------------


def tracked(root: Path) -> list[Path]:
    """Files in git, and new ones that git does not ignore."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return [root / name for name in sorted(set(listing.stdout.split("\0"))) if name and (root / name).is_file()]


def sources(root: Path) -> list[Path]:
    """The program's own modules."""
    return sorted((root / "src").rglob("*.py"))


def check_standing(root: Path) -> list[str]:
    """The documents a newcomer looks for are there."""
    return [f"{name}: missing" for name in STANDING if not (root / name).is_file()]


def check_links(root: Path) -> list[str]:
    """Every link to a file of the project leads to one, and its fragment to a heading."""
    problems = []
    for page in tracked(root):
        if page.suffix != ".md":
            continue
        for link in links(page.read_text("utf-8")):
            if re.match(r"[a-z][a-z+.-]*:", link):
                continue
            name, _, fragment = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists():
                problems.append(f"{page.relative_to(root)}: broken link {link}")
            elif fragment and target.suffix == ".md" and fragment not in anchors(target.read_text("utf-8")):
                problems.append(f"{page.relative_to(root)}: no such heading {link}")
    return problems


def check_records(root: Path) -> list[str]:
    """Every decision record is numbered without gap, has its three headings, and is in the index."""
    folder = root / "docs/adr"
    index = folder / "README.md"
    if not index.is_file():
        return ["docs/adr/README.md: missing"]
    listed = list(links(index.read_text("utf-8")))
    records = sorted(file for file in folder.glob("*.md") if file != index)
    problems = []
    for number, record in enumerate(records, start=1):
        where = record.relative_to(root)
        if not re.fullmatch(rf"{number:04d}-[a-z0-9-]+\.md", record.name):
            problems.append(f"{where}: expected a name like {number:04d}-title.md")
        lines = record.read_text("utf-8").splitlines()
        if [line for line in lines if line.startswith("## ")] != list(ADR_HEADINGS):
            problems.append(f"{where}: expected exactly the headings {', '.join(ADR_HEADINGS)}")
        if not lines or not lines[0].startswith(f"# {number}. "):
            problems.append(f"{where}: expected the title '# {number}. ...'")
        if listed.count(record.name) != 1:
            problems.append(f"{where}: expected once in docs/adr/README.md, found {listed.count(record.name)} times")
    return problems


def check_tree(root: Path) -> list[str]:
    """ARCHITECTURE.md names every layer, and no module that is not there."""
    page = root / "ARCHITECTURE.md"
    text = page.read_text("utf-8") if page.is_file() else ""
    package = root / "src/turnkeeper"
    layers = sorted(entry.name for entry in package.glob("*") if entry.is_dir() and any(entry.rglob("*.py")))
    problems = [f"ARCHITECTURE.md: {name} is not named" for name in layers if not re.search(rf"\b{name}\b", text)]
    there = {file.name for file in [*sources(root), *(root / "scripts").glob("*.py"), *(root / "tests").rglob("*.py")]}
    unknown = {name for name in re.findall(r"[\w<>]+\.py\b", text) if name not in there and "<" not in name}
    return problems + [f"ARCHITECTURE.md: there is no {name}" for name in sorted(unknown)]


def check_glossary(root: Path) -> list[str]:
    """Every word of the glossary has a meaning, once; its unambiguous rivals do not occur in the source."""
    page = root / "CONTEXT.md"
    terms = glossary(page.read_text("utf-8")) if page.is_file() else []
    problems = [f"CONTEXT.md: {term.word} has no meaning" for term in terms if not term.meaning]
    problems += [f"CONTEXT.md: {term.word} has no usual term" for term in terms if not term.usual]
    words = [term.word for term in terms]
    problems += [f"CONTEXT.md: {word} is explained twice" for word in sorted({w for w in words if words.count(w) > 1})]
    if not terms:
        problems.append("CONTEXT.md: no glossary found")
    refused = NEVER | {avoid: f"the word is {term.word}" for term in terms for avoid in term.refused}
    for file in sources(root):
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
            for avoid, advice in refused.items():
                if occurs(avoid, line):
                    problems.append(f"{file.relative_to(root)}:{number}: {avoid!r}; {advice}")
    return problems


def occurs(word: str, line: str) -> bool:
    """Whether a line holds a word, alone or as a part of a name (``TurnManager``, ``text_utils``)."""
    # The language's own words, Procrastinate's classes, and git's command.
    line = re.sub(r"ContextManager|JobManager|SchemaManager|email\.utils|\"clone\"", "", line)
    if word.isupper():
        return re.search(rf"(?<![A-Z_]){re.escape(word)}(?![A-Za-z_])", line) is not None
    if word[0].isupper():
        return re.search(rf"(?<![A-Z]){re.escape(word)}(?![a-z])", line) is not None
    return re.search(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])", line, re.IGNORECASE) is not None


def check_unwanted(root: Path) -> list[str]:
    """No file tells where it was written or where its packages were fetched."""
    problems = []
    for file in tracked(root):
        content = file.read_bytes()
        if b"\0" in content[:4096]:
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
            problems += [
                f"{file.relative_to(root)}:{number}: {what}" for what, shape in UNWANTED.items() if shape.search(line)
            ]
    return problems


def check_references(root: Path) -> list[str]:
    """Every event, notification, variable, command, setting and protocol has its line on its reference page."""
    problems = []
    for page, kind, names, only in REFERENCES:
        file = root / page
        text = file.read_text("utf-8") if file.is_file() else ""
        marked = re.findall(r"`([^`\n]+)`", text)
        known = names(root)
        for name in known:
            if not any(re.match(rf"(?:turnkeeper )?{re.escape(name)}(?![\w.-])", mark) for mark in marked):
                problems.append(f"{page}: {kind} `{name}` is not documented")
        for name in re.findall(r"^\| `([^`]+)`", text, flags=re.MULTILINE) if only and known else []:
            if name not in known:
                problems.append(f"{page}: there is no {kind} `{name}`")
    return problems


def check_derived(root: Path) -> list[str]:
    """The pages that are written from the code alone are as they would be written now."""
    problems = []
    for name in (
        "scripts/reference.py",
        "scripts/command_reference.py",
        "scripts/config_reference.py",
        "scripts/api_reference.py",
        "scripts/long_session.py",
    ):
        if not (script := root / name).exists():
            continue
        run = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
        told = run.stdout.splitlines() or run.stderr.splitlines()[-1:] or [f"{name} failed"]
        problems += told if run.returncode else []
    return problems


def check_outputs(root: Path) -> list[str]:
    """Under each ``<!-- output: COMMAND -->`` of the README stands what the command printed."""
    readme = root / "README.md"
    text = readme.read_text("utf-8") if readme.is_file() else ""
    problems = []
    for found in re.finditer(r"<!-- output: (.+?) -->\n+(?:```\w*\n(.*?)```)?", text, flags=re.DOTALL):
        command, shown = found.groups()
        if not (shown or "").strip():
            problems.append(f"README.md: the output of {command!r} has not been pasted")
    return problems


CHECKS = (
    check_standing,
    check_links,
    check_records,
    check_tree,
    check_glossary,
    check_unwanted,
    check_references,
    check_derived,
    check_outputs,
)


def main(root: Path) -> int:
    """Run every check; print the problems; 1 if there are any."""
    problems = [problem for check in CHECKS for problem in check(root)]
    for problem in problems:
        print(problem)
    print(f"documents: {len(CHECKS)} checks, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent))
