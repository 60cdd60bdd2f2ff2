"""Custom tools: functions in a person's own Python files that models may call like any other tool.

A function becomes a tool by the decorator ``@tool``. Its name, its docstring and the annotations of its parameters are
what a model is told. Files are looked for in ``tool`` and ``tools`` below directories of settings.
"""

import inspect
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias, get_type_hints, overload

import msgspec
from anyio import to_thread

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import wire_name
from turnkeeper.tools.tool import AnyTool, Tool, ToolContext, ToolFailure, ToolOutput
from turnkeeper.tools.toolbox import NAME
from turnkeeper.workspace import tool_files
from turnkeeper.workspace.tool_files import ToolTrust

log = logging.getLogger(__name__)

Result: TypeAlias = str | ToolOutput | None
Function: TypeAlias = Callable[..., Result] | Callable[..., Awaitable[Result]]


@overload
def tool(function: Function, /) -> AnyTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    permission: str | None = None,
    read_only: bool = False,
    asks_first: bool = False,
) -> Callable[[Function], AnyTool]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    permission: str | None = None,
    read_only: bool = False,
    asks_first: bool = False,
) -> AnyTool | Callable[[Function], AnyTool]:
    """Make a function a tool.

    Each parameter needs a type; ``Annotated[str, Meta(description="...")]`` tells the model more. A parameter of type
    ``ToolContext`` is given the context and is not shown to the model. The function may be a coroutine function; others
    run on a thread. It returns text, a ToolOutput, or nothing. The user's rules go by ``permission``, which is the name
    of the tool unless given. ``read_only`` says that the function changes no file of the project: what it changes all
    the same is not recorded and cannot be undone. Raises Invalid for a function that cannot be one, and TypeError for
    what is no function.

    Permission is asked for before the function is called. If the function asks once more by its context and the process
    ends before the answer, the call is settled as interrupted: it may have acted. ``asks_first`` says that the function
    acts only after its last ask; such a call goes on waiting, and the function is called again with the answer.
    """
    _check_options(name=name, description=description, permission=permission)
    _check_switches(read_only=read_only, asks_first=asks_first)
    made = partial(
        _made, name=name, description=description, permission=permission, read_only=read_only, asks_first=asks_first
    )
    return made if function is None else made(function)


def _made(
    function: Function,
    *,
    name: str | None,
    description: str | None,
    permission: str | None,
    read_only: bool,
    asks_first: bool,
) -> AnyTool:
    _check_function(function)
    name = name or function.__name__
    if NAME.fullmatch(name) is None:
        raise Invalid(f"{name!r:.80} cannot name a tool; a name is 1 to 64 letters, digits, '_' or '-'")
    description = description or inspect.getdoc(function)
    if not description:
        raise Invalid(f"the tool {name!r} has no docstring, so no model could know what it is for")
    signature = _signature(function, name)
    asked = permission or name

    async def execute(arguments: msgspec.Struct, context: ToolContext) -> ToolOutput:
        await context.ask(asked, ["*"], always=["*"], metadata=msgspec.to_builtins(arguments))
        if not asks_first:
            context.acts()
        given: dict[str, Any] = {field: getattr(arguments, field) for field in arguments.__struct_fields__}
        if signature.context is not None:
            given[signature.context] = context
        return _output(name, await _called(function, given))

    return Tool(
        name=name,
        description=description,
        parameters=signature.parameters,
        execute=execute,
        permission=asked,
        read_only=read_only,
    )


def _check_options(**options: object) -> None:
    for option, value in options.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"@tool({option}=...) takes text, not {value!r:.80}")


def _check_switches(**options: object) -> None:
    for option, value in options.items():
        if not isinstance(value, bool):
            raise TypeError(f"@tool({option}=...) takes True or False, not {value!r:.80}")


def _check_function(function: object) -> None:
    if isinstance(function, Tool):
        raise TypeError(f"{function.name!r} is a tool already; use @tool once")
    if inspect.isclass(function):
        raise TypeError(f"@tool is for functions, and {function.__name__} is a class; decorate a function that uses it")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function.__name__} is a generator; collect what it yields, and return it as one text")
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise TypeError(f"@tool is for functions, and not for {function!r:.80}; write @tool above a function")


class _Signature(NamedTuple):
    """What a model must give, and the parameter that is given the context, if there is one."""

    parameters: type[msgspec.Struct]
    context: str | None


def _signature(function: Function, name: str) -> _Signature:
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise Invalid(f"the parameter {parameter.name!r} of the tool {name!r} must be one that has a name")
        if parameter.name not in hints:
            raise Invalid(f"the parameter {parameter.name!r} of the tool {name!r} needs a type")
        hint = hints[parameter.name]
        if hint is ToolContext:
            context = parameter.name
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, parameter.default))
    try:
        parameters = msgspec.defstruct(f"{name.title()}Arguments", fields, frozen=True, kw_only=True, rename=wire_name)
        msgspec.json.schema(parameters)
    except TypeError as error:
        raise Invalid(f"the parameters of the tool {name!r} cannot be described: {error}") from error
    return _Signature(parameters, context)


async def _called(function: Function, given: dict[str, Any]) -> object:
    if inspect.iscoroutinefunction(function):
        return await function(**given)
    # Python cannot stop a thread. A call that is interrupted waits for it, and is left alone if it takes too long.
    return await to_thread.run_sync(partial(function, **given))


def _output(name: str, result: object) -> ToolOutput:
    if isinstance(result, ToolOutput):
        return result
    if isinstance(result, str) or result is None:
        return ToolOutput(title=name, output=result or "(no output)")
    raise ToolFailure(f"The tool {name} returned {type(result).__name__}; it must return text or a ToolOutput.")


# --- Loading -----------------------------------------------------------------------------------------------------


class _File(NamedTuple):
    """A file, and the marks by which a change of it is noticed."""

    path: Path
    stamp: tuple[int, ...]


class LoadedTools(NamedTuple):
    """The tools in files, and the files that were left out because nobody trusts them."""

    tools: tuple[AnyTool, ...]
    untrusted: tuple[Path, ...] = ()


class CustomTools:
    """Loads the tools in files that may be loaded, and each file again only when it has changed."""

    def __init__(self, trust: ToolTrust) -> None:
        self._trust = trust
        self._loaded: dict[_File, tuple[AnyTool, ...]] = {}

    async def load(self, directories: Sequence[Path]) -> LoadedTools:
        """The tools in these directories; of two with one name the later one.

        A file that cannot be loaded is named in a warning, and costs nothing else.
        """
        found = list(_files(directories))
        if any(file not in self._loaded for file in found):
            await to_thread.run_sync(self._load, found)
        trusted = set(filter(self._trust.allows_directory, directories))
        used = [file for file in found if file in self._loaded and file.path.parent.parent in trusted]
        named = {tool.name: tool for file in used for tool in self._loaded[file]}
        return LoadedTools(tuple(named.values()), tuple(file.path for file in found if file not in used))

    def _load(self, found: Sequence[_File]) -> None:
        wanted = {file.path for file in found}
        for stale in [file for file in self._loaded if file.path in wanted and file not in found]:
            self._loaded.pop(stale, None)
        for file in found:
            if file not in self._loaded:
                tools = self._tools_in(file.path)
                if tools is not None:
                    self._loaded[file] = tools

    def _tools_in(self, path: Path) -> tuple[AnyTool, ...] | None:
        """The tools in a file; None if it may not be loaded."""
        try:
            content = tool_files.read(path)
            if not self._trust.allows(path, content):
                return None
            module = imported(path, content, "turnkeeper_custom_tools")
        except (Exception, SystemExit) as error:
            # The file is a person's own program: whatever it raises, the others work.
            log.warning("the tools in %s are left out: %s: %s", path, type(error).__name__, error)
            return ()
        return tuple(value for value in vars(module).values() if isinstance(value, Tool))


def _files(directories: Sequence[Path]) -> Iterator[_File]:
    for path in tool_files.found_in(directories):
        try:
            found = os.stat(path)
        except OSError:
            continue
        yield _File(path, (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino))


def imported(path: Path, content: bytes, package: str) -> ModuleType:
    """The module in a file. Not by the import system, which would write its cache beside the file."""
    source = decode_source(content)
    module = ModuleType(f"{package}.{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # Dataclasses and annotations look their module up there.
    exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    return module
