"""Output: a tool's output as the model is shown it, within its limits, and the whole of it for the record."""

from typing import NamedTuple

from turnkeeper.core.bounding import HINT, Bounded, bound
from turnkeeper.core.limits import OUTPUT_BYTES_MAX, OUTPUT_LINES_MAX
from turnkeeper.tools.tool import ToolOutput


class BoundOutput(NamedTuple):
    """``output`` is what the model is shown; ``bounded.full``, if not None, is to be kept beside it."""

    output: ToolOutput
    bounded: Bounded


def bound_output(
    output: ToolOutput,
    *,
    lines_max: int = OUTPUT_LINES_MAX,
    bytes_max: int = OUTPUT_BYTES_MAX,
    hint: str = HINT,
) -> BoundOutput:
    """Bound an output and say in its metadata whether it was cut. A tool that said so itself is left as it is.

    ``hint`` tells the model how to see the rest: where it is kept, if it is.
    """
    if "truncated" in output.metadata:
        size = len(output.output.encode("utf-8", "surrogatepass"))
        return BoundOutput(output, Bounded(text=output.output, lines=output.output.count("\n") + 1, bytes=size))
    bounded = bound(output.output, lines_max=lines_max, bytes_max=bytes_max, hint=hint)
    metadata = {**output.metadata, "truncated": bounded.full is not None}
    return BoundOutput(output.but(output=bounded.text, metadata=metadata), bounded)
