"""Find the symbols that a prompt names, with the language servers of the session's directory."""

from functools import partial
from pathlib import Path

from turnkeeper.model.agent import Agent
from turnkeeper.model.session import Session
from turnkeeper.run.configured import DirectoryConfig
from turnkeeper.run.plan_mode import PlanFile
from turnkeeper.run.runtime import Runtime
from turnkeeper.run.settlements import session_rules
from turnkeeper.text.symbols import Symbol
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.symbols import FileSymbols, own_symbols


def session_symbols(
    runtime: Runtime, session: Session, place: ProjectPlace, config: DirectoryConfig, agent: Agent
) -> FileSymbols:
    """Finds symbols for a session. Its language servers are confined like the commands of its agent."""

    async def find(path: Path) -> tuple[Symbol, ...]:
        setup = await runtime.directories.setup(place)
        rules = session_rules(setup, PlanFile.of(session, place, runtime.environ), agent, session)
        approvals = runtime.approvals.rules(runtime.approvals.place(session))
        return await setup.services(session.id).symbols(path, partial(setup.confine, session.id, rules, approvals))

    return find if config.config.lsp or config.config.lsp == {} else own_symbols
