"""After a plan was approved on the screen, the next prompt goes to build: on a store and on a server."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import anyio.from_thread
import pytest
from pane import Pane
from server_process import serving
from workshop import Shop

from turnkeeper.testing.directives import GREETING
from turnkeeper.testing.server import ScriptedServer

Opens = Callable[..., AbstractContextManager[Pane]]
IDLE = r"Alt-Enter"


@pytest.fixture
def provider() -> Iterator[str]:
    """Where a provider answers by the directives in prompts."""
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ScriptedServer()) as scripted,
    ):
        yield scripted.url


def agents(shop: Shop, session: dict[str, Any]) -> list[str]:
    """The agents of the prompts of a session."""
    return [one["info"]["agent"] for one in shop.messages(session["id"]) if one["info"]["role"] == "user"]


@pytest.mark.parametrize("look", ["full screen", "lines"])
@pytest.mark.parametrize("where", ["store", "server"])
def test_after_an_approved_plan_the_chat_shows_and_uses_build(
    where: str, look: str, shop: Shop, opens: Opens, provider: str
) -> None:
    acme = {"protocol": "openai-chat", "options": {"baseURL": provider, "apiKey": "k"}, "models": {"large": {}}}
    shop.configure(model="acme/large", provider={"acme": acme})
    assert shop.process("run", "[[text Ready.]]").returncode == 0
    [session] = shop.sessions()
    plan = shop.data / "plans" / f"{session['time']['created']}-{session['slug']}.md"
    plan.parent.mkdir()
    plan.write_text("1. Do it.\n")
    with serving(shop) if where == "server" else nullcontext() as url:
        more = [*(["--server", url] if url else []), *(["--plain"] if look == "lines" else [])]
        with opens("chat", "--continue", "--agent", "plan", *more, COLUMNS="100") as at:
            at.shows("plan · acme/large", IDLE)
            at.types("[[tool plan_exit {}]] [[text Planned.]]")
            at.presses("Enter")
            at.shows("carry it out", "Yes", "No", "the number of your choice")  # From then on keys answer.
            at.types("1")
            at.presses("Enter")
            at.shows(GREETING, "title · build · acme/large|build · acme/large · Scripted", IDLE)
            at.types("and the rest")
            at.presses("Enter")
            at.shows(f"(?s){GREETING}.*{GREETING}", IDLE)
            at.presses("C-d")
            at.shows("exit code 0")
    assert agents(shop, session) == ["build", "plan", "build", "build"]
