"""The command that asks a real host what works with a model, and records it as a test."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli import candidates
from turnkeeper.cli.failures import OK, REFUSED, UsageError
from turnkeeper.cli.models import local_catalog
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, confirm, note
from turnkeeper.cli.screen import Screen, harmless, money, one_line, plural, show
from turnkeeper.model.refusal import Conflict, Invalid

if TYPE_CHECKING:
    from turnkeeper.core.live_checks import CheckResult
    from turnkeeper.model.catalog import ModelInfo
    from turnkeeper.providers.endpoint import Endpoint
    from turnkeeper.providers.live_check import LiveCheck

TIMEOUT_S: Final = 90.0
COLOURS: Final = {"ok": "green", "failed": "red", "not supported": "yellow", "skipped": "dim"}


async def try_model(
    model: Annotated[str, Parameter(metavar="PROVIDER/MODEL", help="The model to ask.", completer=candidates.models)],
    /,
    *,
    yes: Annotated[bool, Parameter(help="Do not ask before money is spent.")] = False,
    record: Annotated[
        Path | None, Parameter(metavar="FILE", help="Record requests and answers, without keys, as a test.")
    ] = None,
    timeout: Annotated[float, Parameter(metavar="SECONDS", help="How long one answer may take.")] = TIMEOUT_S,
    options: Options,
) -> int:
    """Ask the real host of a model what works, with your key.

    It asks for text, a count of tokens, a tool call, structured output, an image
    if the model takes them, and whether the second of two requests is read from
    a cache: at most seven short requests. What they cost at most is shown before
    anything is sent. A verdict is ok, failed, not supported or skipped; if the
    host refuses, its words are shown. The exit code is 1 if a check failed.
    --record writes a file that `turnkeeper.testing.replay_check` replays without
    a key; keys, addresses, ids of requests and headers are not in it. With
    --json the answer is {"model", "checks": [{"check", "verdict", "words"}],
    "requests", "tokens", "cost", "file"}.

    For example:
      turnkeeper models test anthropic/claude-haiku-4-5
      turnkeeper models test openai/gpt-5-mini --yes --record tests/gpt-5-mini.json
    """
    found, endpoint = await _asked(model, timeout, options)
    if record is not None and record.exists():
        raise Conflict(f"{str(record)!r} exists; name another file, or delete it")
    _confirm(found, endpoint, is_agreed=yes)
    check, results = await _made(found, endpoint, record, options)
    wire = {
        "model": model,
        "checks": results,
        "requests": check.requests,
        "tokens": {"input": check.input, "output": check.output},
        "cost": check.dollars,
        "file": str(record) if record is not None else None,
    }
    answer(options, wire, lambda screen: _total(screen, found, check, record))
    return REFUSED if any(one.verdict == "failed" for one in results) else OK


async def _asked(name: str, timeout_s: float, options: Options) -> "tuple[ModelInfo, Endpoint]":
    """The model and how it is reached. Raises Invalid if it cannot be asked."""
    from turnkeeper.providers import choice
    from turnkeeper.workspace import auth

    if not timeout_s > 0:
        raise UsageError("--timeout must be more than 0")
    _, catalog = await local_catalog(options.environ)
    found = catalog.named(name)
    if found.protocol == "offline":
        raise Invalid("the offline model is in this program, so there is no host to ask")
    endpoint = choice.endpoint(catalog.provider(found.provider_id), found, auth.credentials(options.environ))
    if endpoint.key_required and not endpoint.api_key:
        login = f"`turnkeeper auth login {found.provider_id}` stores one"
        raise Invalid(f"there is no API key for provider {found.provider_id!r}; {login}")
    limits = endpoint.timeouts.but(first_byte_s=timeout_s, idle_s=timeout_s, total_s=timeout_s)
    return found, endpoint.but(timeouts=limits)


def _confirm(model: "ModelInfo", endpoint: "Endpoint", *, is_agreed: bool) -> None:
    """Ask before money is spent. Raises Forbidden if the user does not agree, or cannot be asked."""
    from turnkeeper.core.live_checks import estimate

    dollars = estimate(model)
    price = f"at most about {money(dollars)}" if dollars else "an unknown amount: the catalogue has no price"
    note(harmless(f"{endpoint.shown_url or model.provider_id} is asked up to 7 times; it costs {price}."))
    if not is_agreed:
        no_terminal = "nobody can be asked whether to spend money; --yes agrees"
        confirm("Go on?", no_terminal=no_terminal, refused="nothing was sent")


async def _made(
    model: "ModelInfo", endpoint: "Endpoint", record: Path | None, options: Options
) -> "tuple[LiveCheck, list[CheckResult]]":
    from turnkeeper.providers.live_check import LiveCheck
    from turnkeeper.providers.transport import Network
    from turnkeeper.testing.live_recording import CheckRecorder

    network = Network(options.environ)
    try:
        recorder = CheckRecorder(network.provider(endpoint), _secrets(endpoint))
        check = LiveCheck(recorder.transport(endpoint), model)
        results = []
        async for one in check.results():
            results.append(one)
            if not options.json:
                show(_line(Screen.of(sys.stdout), one))
    finally:
        await network.aclose()
    if record is not None:
        recorder.save(record, model, results)
    return check, results


def _secrets(endpoint: "Endpoint") -> list[str]:
    """The secrets that must not be in a recording."""
    from urllib.parse import urlsplit

    address = urlsplit(endpoint.base_url or "")
    headers = [value for value in endpoint.headers.values() if len(value) >= 8]
    return [endpoint.api_key or "", endpoint.base_url or "", endpoint.shown_url or "", address.netloc, *headers]


def _line(screen: Screen, found: "CheckResult") -> str:
    verdict = screen.paint(f"{found.verdict:<13}", COLOURS[found.verdict])
    return f"{found.check:<17}  {verdict}  {one_line(found.words)}"


def _total(screen: Screen, model: "ModelInfo", check: "LiveCheck", record: Path | None) -> str:
    from turnkeeper.core.live_checks import estimate

    cost = money(check.dollars) if estimate(model) else "cost unknown"
    tokens = f"{check.input:,} tokens in and {check.output:,} out"
    counted = f"{plural(check.requests, 'request')}, {tokens}, {cost}"
    return f"{counted}\nRecorded in {screen.path(str(record))}" if record is not None else counted
