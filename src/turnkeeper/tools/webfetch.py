"""webfetch: a page of the internet as markdown, text or HTML; an image as it is."""

from base64 import b64encode
from typing import Annotated, Final, Literal

from anyio import to_thread
from msgspec import Meta

from turnkeeper.core.limits import FETCH_TIMEOUT_MAX_S, FETCH_TIMEOUT_S
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.tools.tool import Attachment, Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace import file_kind, web
from turnkeeper.workspace.web import Address, Fetched

Format = Literal["markdown", "text", "html"]

_ACCEPT: Final[dict[Format, str]] = {
    "markdown": "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1",
    "text": "text/plain, text/markdown;q=0.9, text/html;q=0.8, */*;q=0.1",
    "html": "text/html, application/xhtml+xml;q=0.9, */*;q=0.1",
}
_HTML: Final = ("text/html", "application/xhtml+xml")
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


class WebfetchArguments(Value):
    """The URL and the format."""

    url: Annotated[str, Meta(description="The address, beginning with http:// or https://.")]
    format: Annotated[Format, Meta(description="What to make of a page of HTML.")] = "markdown"
    timeout: (
        Annotated[
            float,
            Meta(description=f"Seconds to wait. Default: {FETCH_TIMEOUT_S:g}, at most {FETCH_TIMEOUT_MAX_S:g}.", ge=1),
        ]
        | None
    ) = None


async def execute(arguments: WebfetchArguments, context: ToolContext) -> ToolOutput:
    """Fetch the page once it is allowed."""
    if not arguments.url.startswith(("http://", "https://")):
        raise ToolFailure("The address must begin with http:// or https://.")
    metadata: JsonObject = {"url": arguments.url, "format": arguments.format, "timeout": arguments.timeout}
    await context.ask("webfetch", [arguments.url], always=["*"], metadata=metadata)
    fetched = await web.fetch(
        arguments.url,
        timeout_s=min(arguments.timeout or FETCH_TIMEOUT_S, FETCH_TIMEOUT_MAX_S),
        accept=_ACCEPT[arguments.format],
        may_connect=_anything if context.services.fetches_private else web.is_public,
    )
    title = f"{arguments.url} ({fetched.mime or 'unknown type'})"
    if image := _image(fetched):
        return ToolOutput(title=title, output="The image is attached.", attachments=(image,))
    output = await to_thread.run_sync(_shown, fetched, arguments.format)
    moved = f"(Redirected to {fetched.url})\n\n" if fetched.url != arguments.url else ""
    return ToolOutput(title=title, output=f"{moved}{output}" or "(The page is empty.)")


def _anything(address: Address) -> bool:
    return True


def _image(fetched: Fetched) -> Attachment | None:
    mime = file_kind.media_type(fetched.content[: file_kind.SNIFFED_BYTES])
    if mime not in _IMAGES:
        return None
    url = f"data:{mime};base64,{b64encode(fetched.content).decode()}"
    name = fetched.url.partition("?")[0].rstrip("/").rpartition("/")[2]
    return Attachment(mime=mime, url=url, filename=name or None)


def _shown(fetched: Fetched, format: Format) -> str:
    """The page as the model reads it. Raises ToolFailure if it is no text."""
    if b"\0" in fetched.content[: file_kind.SNIFFED_BYTES] and (fetched.charset or "").lower()[:6] != "utf-16":
        raise ToolFailure(f"{fetched.url} is a binary file of type {fetched.mime or 'unknown'}, and cannot be shown.")
    try:
        page = fetched.content.decode(fetched.charset or "utf-8", "replace")
    except LookupError:  # The server names an unknown encoding.
        page = fetched.content.decode("utf-8", "replace")
    if fetched.mime not in _HTML or format == "html":
        return page.strip()
    return _converted(page, "markdown" if format == "markdown" else "plain").strip()


def _converted(page: str, output_format: str) -> str:
    # Imported here: it is a large library, and most sessions fetch nothing.
    from html_to_markdown import ConversionOptions, convert

    options = ConversionOptions(extract_metadata=False, output_format=output_format)
    try:
        return convert(page, options).content or ""
    except Exception as error:  # The converter has errors of its own for damaged pages, without a common base.
        raise ToolFailure(f"The page cannot be converted ({error}). Fetch it with format html.") from error


WEBFETCH: Final = Tool(
    name="webfetch",
    description=text("webfetch"),
    parameters=WebfetchArguments,
    execute=execute,
    permission="webfetch",
    read_only=True,
)
