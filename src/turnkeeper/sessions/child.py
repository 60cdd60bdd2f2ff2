"""Child Sessions that calls start: created and given their prompts, each once."""

from collections.abc import Callable

from turnkeeper.core.child_rules import narrowed
from turnkeeper.core.limits import TITLE_CHARS_MAX
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.run.children import ChildPrompt, NewChild
from turnkeeper.run.runtime import Runtime
from turnkeeper.sessions import prompt as prompting
from turnkeeper.sessions.create import create
from turnkeeper.sessions.edit import patch
from turnkeeper.store import keys
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import stored_place


class CalledSessions:
    """Makes the sessions of the task tool, for the loop."""

    def __init__(self, store: Store, runtime: Callable[[], Runtime]) -> None:
        self._store, self._runtime = store, runtime

    async def create(self, new: NewChild) -> None:
        """Create a session in the directory of its parent. One that exists takes on what limits its caller now."""
        made = await create(
            self._store,
            await stored_place(new.parent.directory),
            id=new.id,
            parent_id=new.parent.id,
            title=new.title[:TITLE_CHARS_MAX],
            agent=new.agent,
            permission=new.permission or None,
            workspace_id=new.parent.workspace_id,
        )
        if narrowed(made.permission or (), new.permission) != (made.permission or ()):
            await patch(
                self._store,
                made.id,
                lambda session: session.but(permission=narrowed(session.permission or (), new.permission)),
            )

    async def admit(self, session_id: str, prompt: ChildPrompt) -> None:
        """Admit the prompt of a task, unless it was: the configuration may name another model since."""
        [known] = await self._store.engine.get([keys.receipt(prompt.id)])
        if known is None:
            given = Prompt(
                message_id=prompt.id, parts=(TextInput(text=prompt.text),), agent=prompt.agent, model=prompt.model
            )
            await prompting.prompt(self._store, self._runtime(), session_id, given)
