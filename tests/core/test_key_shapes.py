"""What can be known of a pasted key without asking its host."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.key_shapes import pasted
from turnkeeper.model.refusal import Invalid


@pytest.mark.parametrize(
    ("text", "removed"),
    [
        ("sk-proj-12345678", ()),
        ("  sk-proj-12345678\r\n", ()),
        ('"sk-proj-12345678"\n', ("the quotes",)),
        ("Bearer sk-proj-12345678", ("'Bearer'",)),
        ("Authorization: bearer sk-proj-12345678", ("'Authorization:'", "'Bearer'")),
        ("export OPENAI_API_KEY='sk-proj-12345678'", ("'export'", "'OPENAI_API_KEY='", "the quotes")),
        ("'Bearer sk-proj-12345678'", ("the quotes", "'Bearer'")),
    ],
)
def test_what_is_pasted_around_a_key_is_removed(text: str, removed: tuple[str, ...]) -> None:
    found = pasted(text, "openai", "OpenAI", ("OPENAI_API_KEY",), own_host=False)
    assert (found.key, found.removed, found.doubts) == ("sk-proj-12345678", removed, ())
    assert "sk-proj" not in repr(found)


@pytest.mark.parametrize("text", ["", "\n", "''", "two words", "sk-\x00-12345678", "sk-schlüssel-1"])
def test_what_no_header_can_send_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="nothing was stored"):
        pasted(text, "openai", "OpenAI", own_host=True)


@pytest.mark.parametrize(
    ("key", "provider", "said", "is_foreign"),
    [
        ("sk-ant-api03-12345678", "openai", "looks like a key of Anthropic (anthropic), not of openai", True),
        ("gsk_123456789", "google", "looks like a key of Groq", True),
        ("sk-or-v1-12345678", "openai", "looks like a key of OpenRouter", True),
        ("sk-ant-oat01-1234", "anthropic", "a token of a Claude subscription", True),
        ("AIza12345678", "anthropic", "looks like a key of Google", True),
        ("abcdefghijkl", "anthropic", "Keys of anthropic begin with 'sk-ant-'", False),
        ("sk-123", "openai", "only 6 characters", False),
    ],
)
def test_a_key_of_another_shape_is_doubted(key: str, provider: str, said: str, is_foreign: bool) -> None:
    found = pasted(key, provider, provider, own_host=False)
    assert said in found.doubts[0]
    assert (found.is_foreign, key in found.doubts[0]) == (is_foreign, False)
    assert pasted(key, provider, provider, own_host=True).doubts == ()


@pytest.mark.parametrize(
    ("key", "provider"),
    [("ghp_123456789", "github-copilot"), ("anything-goes", "deepseek"), ("sk-123456789", "openai")],
)
def test_a_key_of_the_right_or_an_unknown_shape_is_not_doubted(key: str, provider: str) -> None:
    assert pasted(key, provider, provider, own_host=False).doubts == ()


@given(st.text(max_size=40))
def test_whatever_is_pasted_becomes_one_word_or_is_refused(text: str) -> None:
    try:
        found = pasted(text, "openai", "OpenAI", ("OPENAI_API_KEY",), own_host=False)
    except Invalid:
        return
    assert found.key.split() == [found.key]
    assert found.key in text
