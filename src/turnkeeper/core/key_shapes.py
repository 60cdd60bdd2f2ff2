"""Key shapes: checks of a pasted API key without a request to its host."""

from typing import Final, NamedTuple

from turnkeeper.model.refusal import Invalid

SHORT: Final = 8
"""A shorter key is doubtful."""

VENDORS: Final = {
    "sk-ant-": ("anthropic", "Anthropic"),
    "sk-proj-": ("openai", "OpenAI"),
    "sk-svcacct-": ("openai", "OpenAI"),
    "sk-or-": ("openrouter", "OpenRouter"),
    "AIza": ("google", "Google"),
    "gsk_": ("groq", "Groq"),
    "xai-": ("xai", "xAI"),
    "hf_": ("huggingface", "Hugging Face"),
    "pplx-": ("perplexity", "Perplexity"),
    "nvapi-": ("nvidia", "NVIDIA"),
    "csk-": ("cerebras", "Cerebras"),
    "github_pat_": ("github-models", "GitHub"),
    "ghp_": ("github-models", "GitHub"),
    "glpat-": ("gitlab", "GitLab"),
}
"""The vendors by the beginning of their keys."""

_EXPECTED: Final = {
    "anthropic": "sk-ant-",
    "openai": "sk-",
    "openrouter": "sk-or-",
    "groq": "gsk_",
    "xai": "xai-",
    "huggingface": "hf_",
    "perplexity": "pplx-",
}
_SUBSCRIPTION: Final = "sk-ant-oat"
_FAMILIES: Final = {"github-copilot": "github-models"}


class PastedKey(NamedTuple):
    """A key as it is stored. ``repr`` leaves it out."""

    key: str
    removed: tuple[str, ...] = ()
    """Texts around the key that were removed."""
    doubts: tuple[str, ...] = ()
    """Reasons why the key may not work. It may be right nevertheless."""
    is_foreign: bool = False
    """Whether the key is probably not of this provider: a key of another vendor, or no API key."""

    def __repr__(self) -> str:
        return f"PastedKey(removed={self.removed}, doubts={self.doubts})"


def pasted(text: str, provider_id: str, name: str, variables: tuple[str, ...] = (), *, own_host: bool) -> PastedKey:
    """The key in a pasted text. ``own_host``: it is for an address of the user, whose keys have any shape.

    Raises Invalid for what cannot be a key.
    """
    key, removed = _bare(text, variables)
    if not key or any(character.isspace() or not character.isprintable() for character in key):
        raise Invalid("a key is one word without spaces; nothing was stored")
    if not key.isascii():
        raise Invalid("a key has no letters beyond ASCII, which no header can send; nothing was stored")
    doubts, is_foreign = ((), False) if own_host else _doubts(key, provider_id, name)
    return PastedKey(key, removed, doubts, is_foreign)


def _bare(text: str, variables: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The key without texts that are often pasted with it, and these texts."""
    key, removed = text.strip().removeprefix("\ufeff").strip(), []
    for word in ("export ", "Authorization:", "x-api-key:", *(f"{name}=" for name in variables), "Bearer "):
        if key.lower().startswith(word.lower()):
            key = key[len(word) :].strip()
            removed.append(repr(word.strip()))
    if len(key) > 1 and key[0] == key[-1] and key[0] in "\"'`":
        key = key[1:-1].strip()
        removed.append("the quotes")
        inner, more = _bare(key, variables)
        return inner, (*removed, *more)
    return key, tuple(removed)


def _doubts(key: str, provider_id: str, name: str) -> tuple[tuple[str, ...], bool]:
    if key.startswith(_SUBSCRIPTION):
        said = "It is a token of a Claude subscription and no API key; Anthropic allows it in its own programs only."
        return (said,), True
    prefix = max((one for one in VENDORS if key.startswith(one)), key=len, default=None)
    if prefix is not None and VENDORS[prefix][0] != _FAMILIES.get(provider_id, provider_id):
        owner, vendor = VENDORS[prefix]
        said = f"It begins with {prefix!r} and looks like a key of {vendor} ({owner}), not of {name}."
        return (said,), True
    doubts = []
    expected = _EXPECTED.get(provider_id)
    if expected is not None and not key.startswith(expected):
        doubts.append(f"Keys of {name} begin with {expected!r}, and this one does not.")
    if len(key) < SHORT:
        doubts.append(f"It has only {len(key)} characters.")
    return tuple(doubts), False
