"""Record the full screen as docs/images/tui-*.svg: the real application, in a scratch copy of sample/."""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from record_run import ROOT, write

sys.path.insert(0, str(ROOT / "tests/support"))

from screen_pilot import Driven, driven
from textual.widgets import OptionList
from workshop import Shop

from turnkeeper.cli.chat.tui.ask_card import AskCard
from turnkeeper.cli.chat.tui.dialogs import Agreement, Page, Picker

IMAGES = ROOT / "docs/images"
SIZE = (104, 34)
TEST = "python3 -m unittest -q"
EARLIER = ("read tides.py", "read README.md", "search for HIGH, then read test_tides.py")
WORD = "mistake"
"""Said in one of the sessions, and no title."""


def main() -> None:
    """Draw each picture."""
    with TemporaryDirectory(prefix="tk-") as folder:
        shop = Shop(Path(folder, "data"), Path(folder, "tides"), Path(folder, "home"))
        shop.data.mkdir()
        shop.home.mkdir()
        shutil.copytree(ROOT / "sample", shop.project, ignore=shutil.ignore_patterns("__pycache__"))
        for earlier in EARLIER:
            shop.run(earlier)
        shop.configure(permission={"edit": "ask"})
        anyio.run(_session, shop)
        anyio.run(_light, shop)


async def _session(shop: Shop) -> None:
    async with driven(shop, size=SIZE) as seen:
        await seen.says(f"list the files, then run `{TEST}`")
        await seen.until(lambda: len(seen.texts("call")) >= 2)
        await seen.rests()
        await seen.says(f"replace `/ 100` with `/ 60` in tides.py, then run `{TEST}`")
        await seen.until(lambda: bool(seen.screen.query(AskCard)))
        card = seen.screen.query_one(AskCard)
        await seen.until(lambda: card.has_focus and card.is_armed)
        await _draw(seen, "tui-ask")
        await seen.pilot.press("y")
        await seen.until(lambda: not seen.screen.query(AskCard))
        await seen.rests()
        await _draw(seen, "tui-session")
        await seen.pilot.press("f2")
        await seen.until(lambda: isinstance(seen.app.screen, Picker))
        await seen.until(lambda: seen.app.screen.query_one(OptionList).option_count > len(EARLIER))
        await seen.pilot.press(*WORD)
        await seen.until(lambda: WORD in str(seen.app.screen.query_one(OptionList).get_option_at_index(0).prompt))
        await _draw(seen, "tui-sessions")
        await seen.pilot.press("escape", "ctrl+x", "u")
        await seen.until(lambda: isinstance(seen.app.screen, Agreement))
        await _draw(seen, "tui-undo")
        await seen.pilot.press("n", "f1")
        await seen.until(lambda: isinstance(seen.app.screen, Page))
        await _draw(seen, "tui-keys")


async def _light(shop: Shop) -> None:
    async def newest(desk: object) -> None:
        from turnkeeper.cli.chat.tui.conversation import ScreenConversation

        assert isinstance(desk, ScreenConversation)
        [desk.session, *_] = (await desk.tk.list(limit=1)).items

    async with driven(shop, size=SIZE, before=newest) as seen:
        seen.app.theme = "turnkeeper-light"
        await seen.rests()
        await _draw(seen, "tui-light")


async def _draw(seen: Driven, name: str) -> None:
    await seen.pilot.pause(0.3)
    write(IMAGES / f"{name}.svg", seen.app.export_screenshot(title="turnkeeper"))


if __name__ == "__main__":
    main()
