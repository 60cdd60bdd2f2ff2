"""Permission rules: which call may run, which is denied, which the user is asked about. The last match wins."""

import posixpath
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, get_args

from turnkeeper.model.config import Config
from turnkeeper.model.permission import Action, Rule, Ruleset
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Value, encode
from turnkeeper.text import wildcard

PLAIN: Final = frozenset({"todowrite", "question", "webfetch", "websearch", "doom_loop"})
"""Permissions with one action and no patterns: their calls have nothing to match patterns against."""

NAMED: Final = frozenset({"sandbox"})
"""Permissions that only a rule with their name allows: "*" allows much, but switches no guard off."""

PROTECTED: Final = (
    *("opencode.json", "opencode.jsonc", "turnkeeper.json", "turnkeeper.jsonc", "turnkeeper.toml"),
    *(".opencode/*", ".turnkeeper/*", ".git/*"),
    *(".config/opencode/*", ".config/turnkeeper/*"),
)
"""Files that decide what may happen: a model that may edit everything else is asked about these."""

DENIED: Final = "This call is denied by a rule"
"""The beginning of the error of a call that a rule denies."""

EXTERNAL_RULES: Final = (Rule(permission="external_directory", pattern="*", action="ask"),)
"""The default rules of directories outside the project."""

READ_RULES: Final = (
    Rule(permission="read", pattern="*", action="allow"),
    # Secrets are in these files; the example file has none.
    Rule(permission="read", pattern="*.env", action="ask"),
    Rule(permission="read", pattern="*.env.*", action="ask"),
    Rule(permission="read", pattern="*.env.example", action="allow"),
)
"""The default rules of reading."""

_ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
_FILES: Final = ("read", "edit", "list")
"""Permissions whose patterns are paths: from the top of the project, and absolute outside of it."""
_EDITING: Final = frozenset({"write", "edit", "multiedit", "patch", "apply_patch"})


class Allow(Value):
    """The call may run."""


class Deny(Value):
    """A rule denies the call. ``rules`` are the rules of its permission, which the model is shown."""

    rules: Ruleset

    @property
    def reason(self) -> str:
        """The error text for the model."""
        return (
            f"{DENIED}; the user was not asked and asking again will not help. "
            f"The rules for it are: {encode(self.rules).decode()}"
        )


class Ask(Value):
    """The user decides about these patterns; the others are allowed already."""

    patterns: tuple[str, ...]


Decision: TypeAlias = Allow | Deny | Ask


def merge(*rulesets: Iterable[Rule]) -> Ruleset:
    """One ruleset out of several; later rules win."""
    return tuple(rule for rules in rulesets for rule in rules)


def evaluate(rules: Sequence[Rule], permission: str, pattern: str) -> Action:
    """The action of the last matching rule; ``ask`` if none matches."""
    for rule in reversed(rules):
        if wildcard.matches(permission, rule.permission) and wildcard.matches(pattern, rule.pattern):
            if permission in NAMED and rule.permission != permission and rule.action == "allow":
                continue
            return rule.action
    return "ask"


def about(rules: Iterable[Rule], permission: str) -> Ruleset:
    """The rules about a permission: the others say nothing of its patterns."""
    return tuple(rule for rule in rules if wildcard.matches(permission, rule.permission))


def decide(rules: Sequence[Rule], permission: str, patterns: Sequence[str], approvals: Sequence[Rule] = ()) -> Decision:
    """Whether a call may run. One denied pattern denies the call.

    ``approvals`` are the user's permanent approvals. They apply only where the rules ask, so none overrides a deny, and
    to a protected file only if they name it.
    """
    actions = [(pattern, evaluate(rules, permission, pattern)) for pattern in patterns]
    if any(action == "deny" for _, action in actions):
        return denial(rules, permission)
    open_patterns = [
        pattern for pattern, action in actions if action != "allow" and not _is_approved(approvals, permission, pattern)
    ]
    return Ask(patterns=tuple(dict.fromkeys(open_patterns))) if open_patterns else Allow()


def denial(rules: Sequence[Rule], permission: str) -> Deny:
    """The denial of a call under this permission."""
    return Deny(rules=about(rules, permission))


def is_protected(permission: str, pattern: str) -> bool:
    """Whether a permission is to change a file that decides what may happen."""
    return permission == "edit" and any(
        wildcard.matches(pattern, place) for name in PROTECTED for place in (name, f"*/{name}")
    )


def offered(permission: str, open_patterns: Sequence[str], always: Sequence[str]) -> tuple[str, ...]:
    """The patterns that an answer "always" is to approve. For protected files these are just the files."""
    if any(is_protected(permission, pattern) for pattern in open_patterns):
        return tuple(map(wildcard.literal, open_patterns))
    return tuple(always)


def _is_approved(approvals: Sequence[Rule], permission: str, pattern: str) -> bool:
    named = wildcard.literal(pattern) if is_protected(permission, pattern) else None
    allowing = [rule for rule in approvals if rule.action == "allow" and named in (None, rule.pattern)]
    return evaluate(allowing, permission, pattern) == "allow"


def hides(rules: Sequence[Rule], permission: str) -> bool:
    """Whether every call under this permission is denied, so that its tools are not offered."""
    for rule in reversed(rules):
        if wildcard.matches(permission, rule.permission):
            return rule.pattern == "*" and rule.action == "deny"
    return False


def freed(rules: Ruleset, directories: Iterable[str]) -> Ruleset:
    """The rules with directories outside the project allowed, except those that they deny."""
    patterns, outside = [f"{directory.rstrip('/')}/*" for directory in directories], about(rules, "external_directory")
    allowed = [one for one in patterns if evaluate(outside, "external_directory", one) != "deny"]
    return (*rules, *(Rule(permission="external_directory", pattern=one, action="allow") for one in allowed))


def rooted(rules: Iterable[Rule], top: str) -> Ruleset:
    """The rules with further ones for patterns about files that are not as tools write their paths.

    ``top`` is the top of the project. A tool writes ``src/a.py`` for a file below it, and an absolute path for others.
    """
    result: list[Rule] = []
    for rule in rules:
        result.append(rule)
        if (pattern := from_top(rule.pattern, top)) is not None:
            names = [name for name in _FILES if wildcard.matches(name, rule.permission)]
            result += [Rule(permission=name, pattern=pattern, action=rule.action) for name in names]
    return tuple(result)


def from_top(pattern: str, top: str) -> str | None:
    """A pattern about files, changed to the form in which tools write paths; None if it has that form already."""
    below = f"{top.rstrip('/')}/"
    if pattern.startswith("../"):
        return posixpath.normpath(f"{below}{pattern}")
    return pattern.removeprefix(below) if pattern.startswith(below) else None


def default_rules() -> Ruleset:
    """The rules before any configuration. Agents that talk to the user allow what is denied here."""
    return (
        Rule(permission="*", pattern="*", action="allow"),
        Rule(permission="doom_loop", pattern="*", action="ask"),
        Rule(permission="sandbox", pattern="*", action="ask"),
        *EXTERNAL_RULES,
        Rule(permission="question", pattern="*", action="deny"),
        Rule(permission="plan_enter", pattern="*", action="deny"),
        Rule(permission="plan_exit", pattern="*", action="deny"),
        *READ_RULES,
    )


def agent_rules(
    config: Config,
    home: str,
    name: str,
    built_in: Ruleset,
    own: Ruleset,
    narrowed: Callable[[Ruleset], Ruleset] = lambda rules: rules,
) -> Ruleset:
    """The rules of an agent: the defaults, what is built in for it, the configuration, and what that says of the agent.

    ``narrowed`` is what the agent takes from the rules of the configuration that are for all agents.

    Of a project that is not trusted, denies come last, so that they hold for every agent. Asks come before the user's
    configuration, so that they weaken nothing in it.
    """
    switches = parse_switches(config.tools) if config.tools else ()
    general = parse_rules(config.permission, home) if config.permission is not None else ()
    denied = (parse_rules(given, home) for given in (*config.denied, *(one.get(name, {}) for one in config.denied_to)))
    for_all = narrowed(merge(switches, general))
    return merge(_asked(config, home, name, merge(default_rules(), built_in)), for_all, own, *denied)


def _asked(config: Config, home: str, name: str, rules: Ruleset) -> Ruleset:
    """The built-in rules of an agent with what untrusted projects ask. What is denied stays denied.

    So the denies follow the asks once more, with the rules that except something from them. Of what these allow, the
    asks hold.
    """
    asks = merge(
        *(parse_rules(given, home) for one in config.asked for given in (one.permission, one.agent.get(name, {})))
    )
    if not asks:
        return rules
    denies = {nth for nth, one in enumerate(rules) if one.action == "deny" and _holds(rules, one)}
    again = [
        one
        for nth, one in enumerate(rules)
        if nth in denies
        or any(deny < nth and wildcard.matches(one.permission, rules[deny].permission) for deny in denies)
    ]
    return merge(rules, asks, again, (ask for one in again if one.action == "allow" for ask in _limited_to(one, asks)))


def _holds(rules: Ruleset, rule: Rule) -> bool:
    return evaluate(rules, rule.permission, rule.pattern) == rule.action


def _limited_to(allowed: Rule, asks: Ruleset) -> list[Rule]:
    """The asks about the permission of an allow rule, limited to that permission and its pattern."""
    matching = [ask for ask in asks if wildcard.matches(allowed.permission, ask.permission)]
    return [
        ask.but(permission=allowed.permission, pattern=ask.pattern if allowed.pattern == "*" else allowed.pattern)
        for ask in matching
    ]


def parse_rules(config: object, home: str) -> Ruleset:
    """The ``permission`` value of a configuration as rules, in order. Raises Invalid with the wrong key."""
    if isinstance(config, str):
        return (Rule(permission="*", pattern="*", action=_action(config, "permission")),)
    if not isinstance(config, Mapping):
        raise Invalid(f"'permission' must be an action or an object, not {config!r}")
    return merge(*(_entry(str(key), entry, home) for key, entry in config.items()))


def parse_switches(tools: Mapping[str, bool]) -> Ruleset:
    """The older form, ``{"tools": {name: bool}}``, as rules. All editing tools have the permission ``edit``."""
    return tuple(
        Rule(permission="edit" if name in _EDITING else name, pattern="*", action="allow" if on else "deny")
        for name, on in tools.items()
    )


def _entry(permission: str, entry: object, home: str) -> Ruleset:
    if not isinstance(entry, Mapping):
        return (Rule(permission=permission, pattern="*", action=_action(entry, f"permission.{permission}")),)
    if permission in PLAIN:
        raise Invalid(f'\'permission.{permission}\' takes one action, not patterns; write "allow", "ask" or "deny"')
    return tuple(
        Rule(
            permission=permission,
            # Paths are compared in this form too, so that one spelling of a letter matches the other.
            pattern=unicodedata.normalize("NFC", _at_home(str(pattern), home)),
            action=_action(action, f"permission.{permission}.{pattern}"),
        )
        for pattern, action in entry.items()
    )


def _action(value: object, where: str) -> Action:
    for action in _ACTIONS:
        if value == action:
            return action
    raise Invalid(f"{where!r} must be one of {', '.join(_ACTIONS)}, not {value!r}")


def _at_home(pattern: str, home: str) -> str:
    if pattern == "~" or pattern.startswith("~/"):
        return home + pattern[1:]
    return home + pattern.removeprefix("$HOME") if pattern.startswith("$HOME") else pattern
