"""Sampling: the default temperature, top-p and top-k of model families."""

import re

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.value import Value


class SamplingParameters(Value):
    """Sampling parameters of a request; the provider chooses those that are None."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


_FAMILIES: tuple[tuple[str, SamplingParameters], ...] = (
    (r"north-mini-code", SamplingParameters(temperature=1.0)),
    (r"claude", SamplingParameters()),
    (
        r"gemini-?(?:2\.5|3-flash|3-pro|3\.1|3\.5-flash(?!-lite))",
        SamplingParameters(temperature=1.0, top_p=0.95, top_k=64),
    ),
    (r"gemini", SamplingParameters()),
    (r"glm-4\.[67]", SamplingParameters(temperature=1.0)),
    (r"minimax-m2(?:\.|5|1)", SamplingParameters(temperature=1.0, top_p=0.95, top_k=40)),
    (r"minimax-m2", SamplingParameters(temperature=1.0, top_p=0.95, top_k=20)),
    (r"kimi-k2(?:\.5|p5|-5)", SamplingParameters(temperature=1.0, top_p=0.95)),
    (r"kimi-k2(?:.*thinking|\.|p)", SamplingParameters(temperature=1.0)),
    (r"kimi-k2", SamplingParameters(temperature=0.6)),
)
_COMPILED = tuple((re.compile(pattern), sampling) for pattern, sampling in _FAMILIES)
_DEEPSEEK = re.compile(r"deepseek-v4-flash")


def defaults(model: ModelInfo) -> SamplingParameters:
    """The default sampling parameters of a model."""
    name = model.api_id.lower()
    if _DEEPSEEK.search(name) and ("0731" in name or model.provider_id in ("deepseek", "opencode")):
        return SamplingParameters(top_p=0.95)
    return next((sampling for pattern, sampling in _COMPILED if pattern.search(name)), SamplingParameters())


def of(request: ModelRequest) -> SamplingParameters:
    """The sampling parameters of a request: its own, else the model's; no temperature if the model refuses it."""
    table = defaults(request.model)
    temperature = request.temperature if request.temperature is not None else table.temperature
    return SamplingParameters(
        temperature=temperature if request.model.temperature else None,
        top_p=request.top_p if request.top_p is not None else table.top_p,
        top_k=table.top_k,
    )
