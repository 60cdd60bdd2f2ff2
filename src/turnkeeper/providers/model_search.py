"""Search for models in the whole catalogue, by id, name and provider."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.providers.catalog import Catalog

NEAREST_MAX: Final = 8
_NEAR: Final = 0.6


class FoundModels(NamedTuple):
    """The result of a search. If no model has all words, it has the models with the most similar ids."""

    fits: bool
    models: tuple[ModelInfo, ...]


def search(catalog: Catalog, text: str, providers: Iterable[str]) -> FoundModels:
    """The models of these providers, in their order, that have every word of a text in id, name or provider.

    Those in which each word begins a piece come first: 4 is in ``20240620``, too. Deprecated models come last.
    """
    words = text.casefold().split()
    everything = [model for one in providers for model in catalog.provider(one).models.values()]
    fitting = [model for model in everything if all(word in _text(catalog, model) for word in words)]
    if fitting:
        ranked = sorted(
            fitting, key=lambda one: (one.status == "deprecated", not _begins(words, _pieces(_text(catalog, one))))
        )
        return FoundModels(True, tuple(ranked))
    near_words = _Near(words)
    rated = [(near_words.rating(model), model) for model in everything]
    near = sorted((one for one in rated if one[0] >= _NEAR), key=lambda one: -one[0])
    return FoundModels(False, tuple(model for _, model in near[:NEAREST_MAX]))


def _text(catalog: Catalog, model: ModelInfo) -> str:
    return f"{model.provider_id}/{model.id} {model.name} {catalog.title(model.provider_id)}".casefold()


def _begins(words: Sequence[str], pieces: Sequence[str]) -> bool:
    return all(any(piece.startswith(word) for piece in pieces) for word in words)


class _Near:
    """Rating of models for words: the mean, over the words, of the similarity to the nearest piece of the id."""

    def __init__(self, words: Sequence[str]) -> None:
        self._pieces = [piece for word in words for piece in _pieces(word)]
        self._known: dict[tuple[str, str], float] = {}

    def rating(self, model: ModelInfo) -> float:
        """The rating of a model, from 0 to 1."""
        pieces = _pieces(f"{model.provider_id}/{model.id}".casefold())
        best = [max((self._likeness(wanted, piece) for piece in pieces), default=0.0) for wanted in self._pieces]
        return sum(best) / len(best) if best else 0.0

    def _likeness(self, wanted: str, piece: str) -> float:
        pair = (wanted, piece)
        if pair not in self._known:
            self._known[pair] = SequenceMatcher(None, wanted, piece, autojunk=False).ratio()
        return self._known[pair]


def _pieces(name: str) -> list[str]:
    return [piece for piece in re.split(r"[^\w.]+|_", name) if piece]
