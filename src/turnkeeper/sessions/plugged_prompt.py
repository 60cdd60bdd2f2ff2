"""Changes of plugins to a prompt before it is admitted."""

from turnkeeper.mint import Mint
from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import Part
from turnkeeper.model.refusal import Invalid
from turnkeeper.plugins.hooks import CHAT_MESSAGE
from turnkeeper.plugins.payloads import ChatMessageInput, ChatMessageOutput, UserPart
from turnkeeper.run.configured import ResolvedDirectory
from turnkeeper.run.directories import Directories


async def plugged_prompt(
    mint: Mint, directories: Directories, where: ResolvedDirectory, message: UserMessage, found: tuple[Part, ...]
) -> tuple[UserMessage, tuple[Part, ...]]:
    """The message as plugins change it. They cannot rename it. Parts that they added get ids."""
    plugins = directories.plugins.now(where.place.directory)
    if not plugins.has(CHAT_MESSAGE.name):
        return message, found
    session_id, parts = message.session_id, [part for part in found if isinstance(part, UserPart)]
    asked = ChatMessageInput(session_id=session_id, message_id=message.id, agent=message.agent, model=message.model)
    given = ChatMessageOutput(message=message, parts=parts)
    changed, by = await plugins.trigger(CHAT_MESSAGE, asked, given, session_id=session_id)
    if not by:
        return message, found
    kept = {"id": message.id, "session_id": session_id, "time": message.time, "agent": message.agent}
    if changed.message.model != message.model:
        try:
            directories.require(where.place, changed.message.model, where.config)
        except Invalid as error:
            plugins.unusable(by, CHAT_MESSAGE.name, error, session_id)
            kept["model"] = message.model
    known = {part.id for part in parts}
    own: dict[str, Part] = {}
    for part in changed.parts:
        id = part.id if part.id in known and part.id not in own else mint.part_id()
        own[id] = part.but(id=id, session_id=session_id, message_id=message.id)
    return changed.message.but(**kept), tuple(own.values())
