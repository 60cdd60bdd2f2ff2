"""What another program recorded can be recalled like our own."""

from pathlib import Path

from opencode_files import COMPACTED, database

from turnkeeper.app import Turnkeeper
from turnkeeper.core.handles import pieces
from turnkeeper.core.history import HistoryItem
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted


async def test_every_text_that_opencode_recorded_is_given_back_by_its_handle(tk: Turnkeeper, tmp_path: Path) -> None:
    await tk.import_opencode(database(tmp_path / "data"))
    asked = 0
    for session in (await tk.list(roots=False, archived=True)).items:
        async for message in tk.iter_messages(session.id):
            entry = HistoryItem(message=message.info, parts=message.parts)
            wanted = {text for part in message.parts if isinstance(part, TextPart) and (text := part.text)}
            wanted |= {
                part.state.output
                for part in message.parts
                if isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted) and part.state.output
            }
            named = {piece.text: piece.handle for piece in pieces(entry)}
            assert wanted <= named.keys()
            for text in wanted:
                assert (await tk.recall(session.id, named[text], limit=None)).text == text
                asked += 1
    assert asked > 50


async def test_what_opencode_compacted_away_is_found_by_its_words(tk: Turnkeeper, tmp_path: Path) -> None:
    await tk.import_opencode(database(tmp_path / "data"))
    messages = [one async for one in tk.iter_messages(COMPACTED, reverse=False)]
    [first] = [part.text for part in messages[0].parts if isinstance(part, TextPart)][:1]
    hits = await tk.recall_search(COMPACTED, " ".join(first.split()[:3]))
    assert hits[0].hidden == "compacted"
    assert first in [(await tk.recall(COMPACTED, hit.handle, limit=None)).text for hit in hits]
