"""The prompt box of the full screen: what keys do to the text."""

import pytest
from screen_pilot import driven
from textual.events import Key
from workshop import Shop


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["ctrl+u", "x", "y", "z"], "xyz"),
        (["backspace", "x", "y", "z"], "hello worlxyz"),
        (["ctrl+a", "x", "y", "z"], "xyzhello world"),
        (["home", "x", "delete", "y"], "xyello world"),
        (["left", "left", "x", "right", "y"], "hello worxlyd"),
        (["ctrl+w", "x", "y", "z"], "hello xyz"),
        (["ctrl+left", "ctrl+k", "x", "y", "z"], "hello xyz"),
        (["home", "shift+right", "x", "end", "y"], "xello worldy"),
        (["x", "ctrl+z", "y", "z"], "hello worldyz"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
async def test_keys_that_arrive_together_are_applied_in_their_order(shop: Shop, keys: list[str], expected: str) -> None:
    async with driven(shop) as seen:
        box = seen.screen.box
        box.text = "hello world"
        box.move_cursor(box.document.end)
        for key in keys:  # As the driver does with what one read returned.
            seen.app.post_message(Key(key, key if len(key) == 1 else None))
        await seen.pilot.pause()
        await seen.until(lambda: box.text == expected)
