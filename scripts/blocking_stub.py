"""Write the types of the interface without ``async`` from those of Turnkeeper: ``src/turnkeeper/api/blocking.pyi``.

``make check`` fails when the file differs from what this would write.
"""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

from turnkeeper.api import Turnkeeper

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "src/turnkeeper/api/blocking.pyi"

HEAD = '''"""The types of ``blocking.py``. Written by ``scripts/blocking_stub.py`` from the classes of Turnkeeper."""

from typing import Generic, Self
'''

CLASSES = '''
class OpenLoop:
    """The event loop of an open store."""

    is_closed: bool
    def __init__(self, portal: BlockingPortal) -> None: ...
    def is_lost(self) -> bool: ...

class BlockingIterator(Generic[T]):
    """Iterates over what comes from the event loop."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> T: ...

class BlockingSubscription(BlockingIterator[T]):
    """A subscription."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def close(self) -> None: ...

class BlockingStreamedAnswer(BlockingIterator[str], Generic[T]):
    """The text of an answer as it comes, and the whole answer when it has ended."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    @property
    def session_id(self) -> str: ...
    @property
    def answer(self) -> Answer[T]: ...
    def close(self) -> None: ...

class BlockingTurnkeeper:
    """An open store with the methods of Turnkeeper, each of which blocks."""

    def __init__(self, turnkeeper: Turnkeeper, loop: OpenLoop) -> None: ...
'''

OWN_IMPORTS = """
from types import TracebackType
from anyio.from_thread import BlockingPortal
from turnkeeper.api.turnkeeper import Turnkeeper
from turnkeeper.model.answer import Answer
"""

BLOCKING = {
    "AsyncIterator": "BlockingIterator",
    "Subscription": "BlockingSubscription",
    "StreamedAnswer": "BlockingStreamedAnswer",
}


def stub() -> str:
    """The text of the stub, formatted."""
    sources = [kind for kind in Turnkeeper.__mro__ if kind.__module__.startswith("turnkeeper.api.")]
    trees = [ast.parse(Path(inspect.getfile(kind)).read_text("utf-8")) for kind in sources]
    methods = [line for tree in trees for line in methods_of(tree)]
    text = CLASSES + "".join(methods)
    imports = {name: line for tree in [ast.parse(OWN_IMPORTS), *trees] for name, line in imports_of(tree)}
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    wanted = sorted({imports[name] for name in used & imports.keys()})
    made = HEAD + "\n".join(wanted) + '\n\nT = TypeVar("T")\n' + text
    return formatted(made.replace("import Generic, Self\n", "import Generic, Self, TypeVar\n"))


def methods_of(tree: ast.Module) -> list[str]:
    """The public methods of the classes of a module, without their bodies."""
    found = []
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for node in kind.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_public(node):
                found.append(signature(node))
    return found


def is_public(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a method that callers see: no property, and not the body of an overloaded method."""
    names = {one.id for one in node.decorator_list if isinstance(one, ast.Name)}
    return not node.name.startswith("_") and "property" not in names and (node.name not in OVERLOADED or bool(names))


OVERLOADED = {"ask", "stream"}


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A method of the stub."""
    made = ast.FunctionDef(
        name=node.name,
        args=node.args,
        body=[ast.Expr(ast.Constant(...))],
        decorator_list=node.decorator_list,
        returns=Blocked().visit(Unquoted().visit(node.returns)),
        lineno=0,
    )
    Unquoted().visit(made.args)
    return "    " + ast.unparse(made).replace("\n", "\n    ").replace(":\n        ...", ": ...") + "\n"


class Unquoted(ast.NodeTransformer):
    """Annotations in quotes are written without: a stub needs no imports that come late."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:  # The name is that of the node.
        """Take a text of a type for the type."""
        is_type = isinstance(node.value, str) and node.value[:1].isupper() | node.value.startswith(("str", "tuple"))
        return ast.parse(node.value, mode="eval").body if is_type and isinstance(node.value, str) else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Leave the words of a Literal alone."""
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            return node
        self.generic_visit(node)
        return node


class Blocked(ast.NodeTransformer):
    """What must be awaited becomes what blocks."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Rename a type."""
        return ast.Name(BLOCKING.get(node.id, node.id))


def imports_of(tree: ast.Module) -> list[tuple[str, str]]:
    """Each name that a module imports, with the line that imports it."""
    return [
        (alias.asname or alias.name, f"from {node.module} import {alias.name}")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


def formatted(text: str) -> str:
    """As ``ruff format`` writes it."""
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--quiet", "--fix-only", "--select", "I"], ["format", "--quiet"]):
        arguments = [*ruff, *command, "--stdin-filename", str(STUB), "-"]
        text = subprocess.run(arguments, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def main() -> int:
    """Write the stub; with ``--check`` only say whether it is current."""
    text = stub()
    if "--check" in sys.argv:
        if STUB.read_text("utf-8") != text:
            print(f"{STUB.relative_to(ROOT)} is not current; run scripts/blocking_stub.py")
            return 1
        return 0
    STUB.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
