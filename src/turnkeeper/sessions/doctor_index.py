"""Check the search index of a session: whether a sample of its texts is found."""

from collections.abc import Mapping

from turnkeeper.core import blobs
from turnkeeper.core.search_text import searchable
from turnkeeper.model.parts import ToolPart
from turnkeeper.store import documents, keys
from turnkeeper.store.engine import Engine, Key
from turnkeeper.store.engines.words import words

TEXTS_CHECKED_MAX = 16
"""How many texts of a session are searched for, besides its title. Each takes a search."""

WORDS_ASKED_MAX = 6


class IndexCheck:
    """The check of one session. ``run`` fills ``missing`` and ``outdated``."""

    def __init__(
        self, engine: Engine, session_id: str, texts: Mapping[Key, str], expected: Mapping[Key, bytes]
    ) -> None:
        """``texts`` are all texts that the index should have, ``expected`` the documents of the session."""
        self._engine, self._session_id = engine, session_id
        self._texts, self._documents = texts, expected
        self.missing: list[Key] = []
        """Texts that a search does not find."""
        self.outdated: list[Key] = []
        """Calls that are not found by their inputs: an earlier version has indexed them."""

    async def run(self) -> None:
        """Search for the title, for an even sample of the texts, and for the oldest call by its input."""
        title = keys.text(self._session_id, "title")
        rest = [key for key in self._texts if key != title]
        sample = [title, *rest[:: max(1, -(-len(rest) // TEXTS_CHECKED_MAX))]]
        for key, text in (await self.plain({key: self._texts[key] for key in sample if key in self._texts})).items():
            if not await self._is_found(key, text):
                (self.outdated if await self._is_found_without_input(key) else self.missing).append(key)
        if not self.missing and not self.outdated:
            oldest = self._oldest_input()
            self.outdated += [key for key, text in oldest.items() if not await self._is_found(key, text)]

    async def plain(self, texts: Mapping[Key, str]) -> dict[Key, str]:
        """The texts, with the content of their blobs inserted."""
        names = sorted({name for text in texts.values() for name in blobs.mentioned(text)})
        found = await self._engine.get([keys.blob(name) for name in names]) if names else []
        known = {name: body for name, body in zip(names, found, strict=True) if body is not None}
        return {key: blobs.spell_out(text, known) for key, text in texts.items()}

    async def _is_found(self, key: Key, text: str) -> bool:
        # A search for the longest words is the fastest, because they are the rarest.
        asked = sorted(set(words(text[:2000])), key=lambda word: (-len(word), word))[:WORDS_ASKED_MAX]
        if not asked:
            return True
        return key in await self._engine.search(" ".join(asked), key[:-1], limit=10_000)

    async def _is_found_without_input(self, key: Key) -> bool:
        text = self._without_input(key)
        return text is not None and await self._is_found(key, (await self.plain({key: text}))[key])

    def _oldest_input(self) -> dict[Key, str]:
        """The words of the input of the oldest call that has others than its title and output."""
        for key, text in self._texts.items():
            before = self._without_input(key)
            if before is not None and blobs.MARK not in text and (more := set(words(text)) - set(words(before))):
                return {key: " ".join(more)}
        return {}

    def _without_input(self, key: Key) -> str | None:
        """The text of a call as earlier versions indexed it; None for other texts."""
        stored = self._documents.get(keys.part(*key[2:])) if len(key) == 4 else None
        part = documents.read_part(stored) if stored is not None else None
        return searchable(part.but(state=part.state.but(input={}))) if isinstance(part, ToolPart) else None
