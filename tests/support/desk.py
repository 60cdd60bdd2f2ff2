"""A context that tools run in: it allows or refuses as its rules say, and remembers what was asked and told."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turnkeeper.core.answers import REJECTED
from turnkeeper.core.permission import Allow, Ask, Deny, decide
from turnkeeper.core.recall import Recalled, RecallHit
from turnkeeper.core.sandbox import Confinement
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.permission import Action, Rule
from turnkeeper.model.question import Question
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject
from turnkeeper.tools import load
from turnkeeper.tools.delegation import Assignment, Delegated, TaskResult
from turnkeeper.tools.output import BoundOutput
from turnkeeper.tools.services import ToolServices
from turnkeeper.tools.tool import Denied, Rejected, ToolContext, ToolOutput
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.workspace.jobs import Jobs


@dataclass
class DeskDelegation:
    """Other agents that do their work at once."""

    desk: "Desk"

    async def is_begun(self) -> bool:
        return False

    async def check(self, wanted: Assignment) -> None:
        if wanted.agent == "nobody":
            raise Invalid("there is no agent 'nobody'")

    async def depth_limit(self) -> str | None:
        return None

    async def begin(self, wanted: Assignment) -> Delegated:
        self.desk.tasks.append(wanted)
        model = ModelChoice(provider_id="acme", model_id="large")
        return Delegated(session_id="ses_child", parent_session_id="ses_1", model=model, background=wanted.background)

    async def result(self, work: Delegated) -> TaskResult:
        return self.desk.task_result


@dataclass
class Desk:
    """A project directory, the built-in tools over it, and what happened."""

    directory: Path
    worktree: Path
    rules: list[Rule] = field(default_factory=lambda: [Rule(permission="*", pattern="*", action="allow")])
    asked: list[tuple[str, list[str], list[str]]] = field(default_factory=list)
    shown: list[JsonObject] = field(default_factory=list)
    progress: list[dict[str, Any]] = field(default_factory=list)
    todos: tuple[Todo, ...] = ()
    discovered: list[Path] = field(default_factory=list)
    before_answer: Callable[[], object] = lambda: None
    on_progress: Callable[[], None] = lambda: None
    toolbox: Toolbox = field(default_factory=lambda: Toolbox(load()))
    recalled: dict[str, Recalled] = field(default_factory=dict)
    hits: list[RecallHit] = field(default_factory=list)
    services: ToolServices = field(default_factory=lambda: ToolServices(fetches_private=True))
    confined: Confinement | None = None
    jobs: Jobs | None = None
    handed_over: list[tuple[str, str]] = field(default_factory=list)
    tasks: list[Assignment] = field(default_factory=list)
    """What was handed to other agents. All of them say "done"; none is named "nobody"."""
    task_result: TaskResult = field(default_factory=lambda: TaskResult(state="completed", text="done"))
    says_yes: bool = False
    """Whether the user allows what the rules ask about."""

    async def run(self, tool: str, /, **input: object) -> ToolOutput:
        """One call, as the model is shown its output."""
        return (await self.settle(tool, **input)).output

    async def settle(self, tool: str, /, **input: object) -> BoundOutput:
        return await self.toolbox.run(tool, input, self.context())

    def refuse(self, permission: str, pattern: str = "*", action: Action = "deny") -> None:
        self.rules.append(Rule(permission=permission, pattern=pattern, action=action))

    def context(self) -> ToolContext:
        return ToolContext(
            directory=self.directory,
            worktree=self.worktree,
            session_id="ses_1",
            message_id="msg_1",
            call_id="call_1",
            ask=self._ask,
            progress=self._progress,
            todos=self._todos,
            set_todos=self._set_todos,
            discovered=self.discovered.append,
            recall=self,
            environ={**os.environ, "SHELL": "/bin/bash"},
            confine=lambda: self.confined,
            jobs=self.jobs,
            question=self._question,
            hand_over=self._hand_over,
            plan=self.directory / "a.txt",
            may=lambda permission, patterns: isinstance(decide(self.rules, permission, patterns), Allow),
            refuse_denied=self._refuse_denied,
            services=self.services,
            delegation=DeskDelegation(self),
        )

    def know(self, *names: str) -> None:
        """Count these files as read by the session, as they are now."""
        for name in names:
            self.services.reads.note(self.directory / name, (self.directory / name).read_bytes())

    async def find(self, handle: str) -> Recalled:
        if handle not in self.recalled:
            raise NotFound(f"there is no text with the handle {handle!r}")
        return self.recalled[handle]

    async def search(self, query: str) -> list[RecallHit]:
        return self.hits

    def _refuse_denied(self, permission: str, patterns: Sequence[str]) -> None:
        decision = decide(self.rules, permission, patterns)
        if isinstance(decision, Deny):
            raise Denied(decision)

    async def _ask(
        self, permission: str, patterns: Sequence[str], *, always: Sequence[str], metadata: JsonObject
    ) -> None:
        self.asked.append((permission, list(patterns), list(always)))
        self.shown.append(metadata)
        decision = decide(self.rules, permission, patterns)
        self.before_answer()
        if isinstance(decision, Deny):
            raise Denied(decision)
        if isinstance(decision, Ask) and not self.says_yes:
            raise Rejected(REJECTED[None])

    async def _hand_over(self, agent: str, words: str) -> None:
        self.handed_over.append((agent, words))

    async def _question(self, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...]:
        """Chooses the first option of each."""
        return tuple(tuple(option.label for option in one.options[:1]) for one in questions)

    async def _progress(self, *, title: str | None = None, metadata: JsonObject | None = None) -> None:
        self.progress.append({"title": title, **(metadata or {})})
        self.on_progress()

    async def _todos(self) -> tuple[Todo, ...]:
        return self.todos

    async def _set_todos(self, todos: tuple[Todo, ...]) -> None:
        self.todos = todos
