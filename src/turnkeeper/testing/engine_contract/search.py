"""Contract tests of search."""

import pytest

from turnkeeper.store.engine import Engine, Key

TEXTS: dict[Key, str] = {
    ("text", "ses_1", "1"): "The quick brown Fox_jumps over 42 lazy dogs",
    ("text", "ses_1", "2"): "quicksand; naïve ÜBER-café, straße 漢字",
    ("text", "ses_10", "3"): "A fox that is quick: AND OR NOT NEAR",
    ("other", "4"): "quick",
}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("quick", ["3", "2", "1"]),
        ("QUICK fox", ["3", "1"]),
        ("fox qui", ["3", "1"]),
        ("jumps", ["1"]),
        ("umps", []),
        ("42", ["1"]),
        ("über", ["2"]),
        ("CAFÉ", ["2"]),
        ("cafe\u0301", ["2"]),
        ("naïve straß", ["2"]),
        ("STRASSE", ["2"]),
        ("漢", ["2"]),
        ("quick nothing", []),
        ("not near", ["3"]),
        ("quick AND lazy", []),
        ('"quick', ["3", "2", "1"]),
        ("fox* (quick) -brown:", ["1"]),
        ("", []),
        (" .,;!_ ", []),
    ],
)
async def test_search_finds_texts_with_a_word_beginning_with_each_word_of_the_query(
    engine: Engine, query: str, found: list[str]
) -> None:
    for key, text in TEXTS.items():
        await engine.append(key[1], await engine.length(key[1]), [b"x"], texts={key: text})
    assert [key[-1] for key in await engine.search(query, ("text",))] == found


async def test_a_search_stays_below_its_prefix_and_gives_the_newest_first(engine: Engine) -> None:
    for key, text in TEXTS.items():
        await engine.append("ses_1", await engine.length("ses_1"), [b"x"], texts={key: text})
    assert [key[-1] for key in await engine.search("quick", ())] == ["4", "3", "2", "1"]
    assert [key[-1] for key in await engine.search("quick", ("text", "ses_1"))] == ["2", "1"]
    assert [key[-1] for key in await engine.search("quick", (), limit=2)] == ["4", "3"]
    assert await engine.search("quick", (), limit=0) == []
    assert await engine.search("quick", ("other", "4")) == []


async def test_a_text_that_is_written_again_is_found_by_its_new_words_and_is_the_newest(
    engine: Engine,
) -> None:
    await engine.append("ses_1", 0, [b"x"], texts={("t", "1"): "apple pear", ("t", "2"): "apple"})
    await engine.append("ses_1", 1, [b"x"], texts={("t", "1"): "apple plum"})
    assert await engine.search("apple", ("t",)) == [("t", "1"), ("t", "2")]
    assert await engine.search("pear", ("t",)) == []
    assert await engine.search("plum", ("t",)) == [("t", "1")]


async def test_a_text_is_removed_with_none(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"x"], {("t", "1"): b"x"}, texts={("t", "1"): "apple", ("t", "2"): "apple"})
    await engine.append("ses_1", 1, [b"x"], texts={("t", "1"): None, ("t", "none"): None})
    assert await engine.search("apple", ("t",)) == [("t", "2")]
    assert await engine.get([("t", "1")]) == [b"x"]
