"""Custom tools: functions in a person's own Python files that models may call like any other tool.

A function becomes a tool by the decorator ``@tool``. Its name, its docstring and the annotations of its parameters are
what a model is told. ``custom_files.py`` loads such files.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeAlias, get_origin, get_type_hints, overload

import msgspec
from anyio import to_thread

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import wire_name
from turnkeeper.tools.schema import schema_of
from turnkeeper.tools.time_limit import within
from turnkeeper.tools.tool import AnyTool, Tool, ToolContext, ToolFailure, ToolOutput
from turnkeeper.tools.toolbox import check_name

Function: TypeAlias = Callable[..., object]


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
    timeout_s: float | None = None,
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
    timeout_s: float | None = None,
) -> AnyTool | Callable[[Function], AnyTool]:
    """Make a function a tool.

    Each parameter needs a type; ``Annotated[str, "..."]`` or ``Meta(description="...")`` tells the model more. A
    parameter of type ``ToolContext`` is given the context and is not shown to the model. The function may be a
    coroutine function; others run on a thread. It returns text, a ToolOutput, nothing, or a value that the model reads
    as JSON. The user's rules go by ``permission``, which is the name of the tool unless given. ``read_only`` says that
    the function changes no file of the project: what it changes all the same is not recorded and cannot be undone.
    Raises Invalid for a function that cannot be one, and TypeError for what is no function.

    Permission is asked for before the function is called. If the function asks once more by its context and the process
    ends before the answer, the call is settled as interrupted: it may have acted. ``asks_first`` says that the function
    acts only after its last ask; such a call goes on waiting, and the function is called again with the answer.

    After ``timeout_s`` the call is stopped, and the model is told so. Waiting for the user does not count. In a plugin
    or a file of tools the limit is ten minutes unless given, and the function runs on threads of its own. A function
    that is given to ``open`` runs on the event loop of the program, without a limit unless given.
    """
    _check_options(name=name, description=description, permission=permission)
    _check_switches(read_only=read_only, asks_first=asks_first)
    _check_timeout(timeout_s)
    made = partial(
        _made,
        name=name,
        description=description,
        permission=permission,
        read_only=read_only,
        asks_first=asks_first,
        timeout_s=timeout_s,
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
    timeout_s: float | None,
) -> AnyTool:
    _check_function(function)
    name = name or function.__name__
    check_name(name)
    description = description or inspect.getdoc(function)
    if not description:
        raise Invalid(f"the tool {name!r} has no docstring, so no model could know what it is for")
    signature = _signature(function, name)
    asked = permission or name
    return Tool(
        name=name,
        description=description,
        parameters=signature.parameters,
        execute=FunctionCall(
            name=name,
            function=function,
            permission=asked,
            context_parameter=signature.context,
            asks_first=asks_first,
            timeout_s=timeout_s,
        ),
        permission=asked,
        read_only=read_only,
    )


Bound: TypeAlias = Callable[[ToolContext], Callable[[], object]]
"""A function with its arguments, once it has a context."""


async def _call_here(bound: Bound, context: ToolContext) -> object:
    """Call a function on the event loop of the program, or on a worker thread if it is not async."""
    function = bound(context)
    if inspect.iscoroutinefunction(function):
        return await function()
    # Python cannot stop a thread. A call that is interrupted waits for it, and is left alone if it takes too long.
    return await to_thread.run_sync(function)


class FunctionCall(msgspec.Struct, frozen=True):
    """The ``execute`` of a tool that was made of a function."""

    name: str
    function: Function
    permission: str
    context_parameter: str | None
    asks_first: bool
    timeout_s: float | None
    call: Callable[[Bound, ToolContext], Awaitable[object]] = _call_here
    """Calls the function, on the event loop or on another thread."""

    async def __call__(self, arguments: msgspec.Struct, context: ToolContext) -> ToolOutput:
        """Ask for permission, then call the function."""
        await context.ask(self.permission, ["*"], always=["*"], metadata=msgspec.to_builtins(arguments))
        if not self.asks_first:
            context.acts()
        given = {field: getattr(arguments, field) for field in arguments.__struct_fields__}

        def bound(context: ToolContext) -> Callable[[], object]:
            more = {self.context_parameter: context} if self.context_parameter is not None else {}
            return partial(self.function, **given, **more)

        called = partial(self.call, bound)
        return _output(self.name, await within(self.timeout_s, self.name, context, called))


def _check_options(**options: object) -> None:
    for option, value in options.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"@tool({option}=...) takes text, not {value!r:.80}")


def _check_switches(**options: object) -> None:
    for option, value in options.items():
        if not isinstance(value, bool):
            raise TypeError(f"@tool({option}=...) takes True or False, not {value!r:.80}")


def _check_timeout(timeout_s: object) -> None:
    is_positive = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool) and timeout_s > 0
    if timeout_s is not None and not is_positive:
        raise TypeError(f"@tool(timeout_s=...) takes seconds above 0, not {timeout_s!r:.80}")


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
    """The parameters for the model, and the parameter that gets the context, if there is one."""

    parameters: type[msgspec.Struct]
    context: str | None


def _signature(function: Function, name: str) -> _Signature:
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise Invalid(f"the parameters of the tool {name!r} cannot be described: {error}; import the type") from error
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise Invalid(f"the parameter {parameter.name!r} of the tool {name!r} must be one that has a name")
        if parameter.name not in hints:
            raise Invalid(f"the parameter {parameter.name!r} of the tool {name!r} needs a type")
        hint = _described(hints[parameter.name])
        if hint is ToolContext:
            context = parameter.name
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, parameter.default))
    try:
        parameters = msgspec.defstruct(f"{name.title()}Arguments", fields, frozen=True, kw_only=True, rename=wire_name)
        schema_of(parameters)
    except RecursionError as error:
        raise Invalid(f"the parameters of the tool {name!r} cannot be described: a type holds itself") from error
    except TypeError as error:
        reason = str(error).splitlines()[-1]  # The lines before are about arguments of msgspec.
        raise Invalid(f"the parameters of the tool {name!r} cannot be described: {reason}") from error
    return _Signature(parameters, context)


def _described(hint: Any) -> Any:  # A type, which Python has no type for.
    """The type, with the text in its ``Annotated`` as its description."""
    if get_origin(hint) is Annotated:
        for said in hint.__metadata__:
            if isinstance(said, str):
                return Annotated[hint, msgspec.Meta(description=said)]
    return hint


def _output(name: str, result: object) -> ToolOutput:
    if isinstance(result, ToolOutput):
        return result
    if isinstance(result, str) or result is None:
        return ToolOutput(title=name, output=result or "(no output)")
    try:
        return ToolOutput(title=name, output=msgspec.json.encode(result).decode())
    except (TypeError, ValueError, RecursionError) as error:
        kind = type(result).__name__
        raise ToolFailure(f"The tool {name} returned {kind}, which cannot be written as JSON: {error}") from error
