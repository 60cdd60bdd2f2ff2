"""Commands about the store itself: doctor, db path."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import failures
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer
from turnkeeper.cli.progress import progress
from turnkeeper.cli.screen import Screen, fields, harmless, one_line, plural, size
from turnkeeper.model.refusal import NotFound
from turnkeeper.store.engine_table import named_store, shown_store, store_names

if TYPE_CHECKING:
    from turnkeeper.sessions.diagnosis import Diagnosis, Problem

PROBLEMS_SHOWN = 20


async def doctor(
    *,
    fix: Annotated[bool, Parameter(help="Rewrite derived documents. Events are never changed.")] = False,
    options: Options,
) -> int:
    """Check the store for damage, and repair what can be derived.

    Checks the hash chain of every log, the documents against the logs, the
    references and the file. The exit code is 0 for a sound store and 1 for a
    damaged one, with the first damaged event of each log. With --json the answer
    is {"ok", "sessions", "messages", "parts", "events", "bytes", "problems",
    "engine"}.

    For example:
      turnkeeper doctor
      turnkeeper doctor --fix
      turnkeeper doctor --json | jq '.problems[] | {sessionID, seq, message}'
    """
    if options.is_missing and options.is_named:
        raise NotFound(
            f"there is no store {options.url!r} to check; `turnkeeper db path` prints where the default one is"
        )
    if options.is_emptied:
        found = _unopened(f"the store {options.url!r} is an empty file; a store is never empty, also without sessions")
    else:
        found = await _examined(options, fix=fix)
    answer(options, found, lambda screen: _diagnosis(screen, found))
    return failures.OK if found.ok else failures.REFUSED


async def _examined(options: Options, *, fix: bool) -> "Diagnosis":
    from turnkeeper.store.engine import EngineError

    try:
        async with options.open() as tk:
            with progress("Checking sessions") as moved:
                return await tk.doctor(fix=fix, progress=moved)
    except EngineError as error:  # It is so damaged that it cannot be opened or read.
        return _unopened(str(error))


def _unopened(reason: str) -> "Diagnosis":
    from turnkeeper.sessions.diagnosis import Diagnosis, problem

    found = problem(
        "medium", reason, "nothing was checked; if the store is in place and can be reached, restore a copy"
    )
    return Diagnosis(ok=False, sessions=0, messages=0, parts=0, events=0, bytes=0, problems=(found,), engine={})


def path(*, options: Options) -> None:
    """Print where the store is, even if it does not exist yet.

    With --json the answer is {"store", "path", "exists"}. A memory store and one in
    Postgres have no path; whether the latter exists is not looked up (null). A
    password in the address is not printed.

    For example:
      turnkeeper db path
      sqlite3 -readonly "$(turnkeeper db path)" 'select id, title from session'
    """
    named, shown = named_store(options.url), shown_store(options.url)
    if named is None or bool(named.place) is not bool(named.entry.place):
        raise UsageError(f"{shown!r} names no store; write {store_names()}")
    if not named.entry.is_on_disk:
        answer(options, {"store": shown, "path": None, "exists": None}, lambda _: shown)
        return
    place = str(Path(named.place).expanduser().absolute()) if named.place else None
    value = {"store": shown, "path": place, "exists": place is not None and Path(place).exists()}
    answer(options, value, lambda _: place or f"{named.engine}:")


def _diagnosis(screen: Screen, found: "Diagnosis") -> str:
    counts = [
        plural(found.sessions, "session"),
        plural(found.messages, "message"),
        plural(found.parts, "part"),
        plural(found.events, "event"),
    ]
    rows = [
        ("Store", screen.path(str(found.engine.get("path", "")))),
        ("On disk", size(found.bytes) if found.bytes else ""),
        ("Engine", _build(found)),
        ("Checked", ", ".join(counts)),
        ("Left over", _left_over(found)),
        ("Verdict", _verdict(screen, found)),
    ]
    shown = [_problem(screen, one) for one in found.problems[:PROBLEMS_SHOWN]]
    if (more := len(found.problems) - PROBLEMS_SHOWN) > 0:
        shown.append(f"... and {more:,} more; --json shows all of them")
    return "\n\n".join([fields(screen, rows), *shown])


def _build(found: "Diagnosis") -> str:
    names = {"sqlite": "SQLite", "apsw": "apsw", "postgres": "Postgres", "psycopg": "psycopg"}
    return ", ".join(f"{shown} {found.engine[name]}" for name, shown in names.items() if name in found.engine)


def _left_over(found: "Diagnosis") -> str:
    count = found.engine.get("removedTextsIndexed")
    if not isinstance(count, int) or not count:
        return ""
    return f"{plural(count, 'text')} of removed sessions in the search index; the next commands remove them"


def _verdict(screen: Screen, found: "Diagnosis") -> str:
    damage = [one for one in found.problems if one.is_damage]
    left = [one for one in damage if not one.fixed]
    if found.ok:
        facts = [f"{plural(len(damage) - len(left), 'problem')} fixed"] if len(damage) > len(left) else []
        if remarks := len(found.problems) - len(damage):
            facts.append(plural(remarks, "remark"))
        return f"{screen.paint('✓ sound', 'green')}{''.join(f', {one}' for one in facts)}"
    if not found.engine:  # It could not be opened: damaged, or only out of reach.
        return screen.paint("✗ not checked", "red")
    first = next((one for one in left if one.seq is not None), None)
    where = f"; the first bad event is {first.seq} of {first.session_id}" if first else ""
    return screen.paint(f"✗ damaged: {plural(len(left), 'problem')}", "red") + where


def _problem(screen: Screen, problem: "Problem") -> str:
    place = " ".join(
        text for text in (problem.session_id, f"event {problem.seq}" if problem.seq is not None else None) if text
    )
    style = "green" if problem.fixed else "red" if problem.is_damage else "yellow"
    state = "fixed: " if problem.fixed else ""
    lines = [f"{screen.paint(f'{state}{problem.kind}', style)}  {screen.paint(harmless(place), 'cyan')}".rstrip()]
    lines += [f"  {one_line(text)}" for text in (problem.message, problem.advice) if text]
    return "\n".join(lines)
