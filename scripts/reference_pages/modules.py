"""The page that lists every module."""

import ast
from pathlib import Path

import turnkeeper

MODULES = """\
# Modules

Every module of the package, written from its docstring by `scripts/reference.py`.
[ARCHITECTURE](../../ARCHITECTURE.md) has the layers.
"""


def modules_page() -> str:
    """Every module of the package, with the first sentence of its docstring."""
    package = Path(turnkeeper.__file__).parent
    folders: dict[str, list[Path]] = {}
    for file in sorted(package.rglob("*.py")):
        if file.name != "__init__.py":
            folders.setdefault(str(file.parent.relative_to(package)), []).append(file)
    text = MODULES
    for folder, files in sorted(folders.items()):
        title = "turnkeeper" if folder == "." else folder
        about = first_sentence(package / folder / "__init__.py") if folder != "." else ""
        rows = "".join(f"| `{file.name}` | {first_sentence(file)} |\n" for file in files)
        text += f"\n## {title}\n\n" + (f"{about}\n\n" if about else "") + f"| Module | What it is |\n|---|---|\n{rows}"
    return text


def first_sentence(file: Path) -> str:
    """The first line of a module's docstring."""
    doc = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return doc.partition("\n")[0].replace("``", "`").replace("|", "\\|")
