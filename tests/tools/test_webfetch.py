"""webfetch: what a model is shown of a page."""

import msgspec
import pytest
from desk import Desk
from web_site import Page, redirect, site

from turnkeeper.tools.tool import ToolFailure, ToolOutput

HTML = b"""<html><head><title>Wind</title><style>p {}</style><script>alert(1)</script></head>
<body><h1>Wind</h1><p>It <b>blows</b> from the <a href="/west">west</a>.</p><ul><li>one</li></ul></body></html>"""
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


async def fetch(desk: Desk, page: Page, **input: object) -> ToolOutput:
    raised: ToolFailure | None = None
    async with site({"/": page, "/moved": redirect("/")}) as served:
        desk.shown.clear()
        try:
            return await desk.run("webfetch", **{"url": f"{served.url}/", **input})
        except ToolFailure as error:
            raised = error
    raise raised


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("markdown", "# Wind\n\nIt **blows** from the [west](/west).\n\n- one"),
        ("text", "Wind\n\nIt blows from the west.\n\n- one"),
        ("html", HTML.decode()),
    ],
)
async def test_a_page_is_shown_in_the_form_that_was_asked_for(desk: Desk, format: str, expected: str) -> None:
    output = await fetch(desk, Page(HTML, "text/html; charset=utf-8"), format=format)
    assert output.output == expected
    assert output.title.endswith("/ (text/html)")


async def test_the_user_is_asked_with_the_address(desk: Desk) -> None:
    output = await fetch(desk, Page(b"hi", "text/plain"), timeout=9)
    assert output.output == "hi"
    [(permission, [url], always)] = desk.asked
    assert (permission, always) == ("webfetch", ["*"])
    assert desk.shown == [{"url": url, "format": "markdown", "timeout": 9.0}]


async def test_an_image_is_attached(desk: Desk) -> None:
    output = await fetch(desk, Page(PNG, "image/png"))
    [image] = output.attachments
    assert (output.output, image.mime) == ("The image is attached.", "image/png")


async def test_other_binary_content_is_refused(desk: Desk) -> None:
    with pytest.raises(ToolFailure, match="is a binary file of type application/zip"):
        await fetch(desk, Page(b"PK\3\4\0\0", "application/zip"))


async def test_a_charset_that_nobody_knows_does_no_harm(desk: Desk) -> None:
    assert (await fetch(desk, Page("é".encode(), "text/plain; charset=klingon"))).output == "é"


async def test_this_machine_is_refused_unless_the_settings_allow_it(desk: Desk) -> None:
    desk.services = msgspec.structs.replace(desk.services, fetches_private=False)
    with pytest.raises(ToolFailure, match=r"unless the setting webfetch.private is true"):
        await fetch(desk, Page(HTML))
