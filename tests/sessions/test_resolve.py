"""What becomes of the parts of a prompt, with real files."""

import io
import os
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from PIL import Image

from turnkeeper.core.limits import IMAGE_READ_MAX, MEDIA_BYTES_MAX
from turnkeeper.mint import Mint
from turnkeeper.model.agent import Agent
from turnkeeper.model.parts import AgentPart, FilePart, Part, SubtaskPart, TextPart
from turnkeeper.model.parts.base import Mention, Span
from turnkeeper.model.parts.file import FileSource, Position, Range, ResourceSource, SymbolSource
from turnkeeper.model.permission import Action, Rule, Ruleset
from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, SubtaskInput, TextInput
from turnkeeper.model.refusal import Invalid
from turnkeeper.sessions.attach import Attaching
from turnkeeper.sessions.resolve import Resolution, resolve
from turnkeeper.text.attachment_url import read_data_url
from turnkeeper.text.image_size import image_size
from turnkeeper.workspace.images import Encodings, pillow
from turnkeeper.workspace.project import identify

LINES = "".join(f"line {number}\n" for number in range(1, 31))
NAMED = Mention(value="@a.txt", start=0, end=6)


async def resolved(
    directory: Path,
    *parts: PartInput,
    rules: Ruleset = (),
    has_task: bool = True,
    pillow: Callable[[], Encodings | None] = pillow,
) -> tuple[Part, ...]:
    attaching = Attaching("ses_1", "msg_1", await identify(directory), pillow=pillow)
    agents = {"explore": Agent(name="explore")}
    return await resolve(parts, Resolution(Mint.fixed(), attaching, rules, agents, has_task))


def a_file(path: Path, query: str = "", *, mime: str = "text/plain", **given: object) -> FileInput:
    return FileInput(mime=mime, url=path.as_uri() + query).but(**given)


def texts(parts: Sequence[Part]) -> list[str]:
    assert all(isinstance(part, TextPart) and part.synthetic for part in parts)
    return [part.text for part in parts if isinstance(part, TextPart)]


def png(width: int = 4, height: int = 4) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(buffer, "PNG")
    return buffer.getvalue()


def data_url(content: bytes, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{b64encode(content).decode()}"


def content_of(part: Part) -> bytes:
    assert isinstance(part, FilePart)
    address = read_data_url(part.url)
    assert address is not None
    return address.content()


async def test_text_is_stored_as_given(tmp_path: Path) -> None:
    [text] = await resolved(
        tmp_path, TextInput(id="prt_mine", text="hi", ignored=True, time=Span(start=1, end=2), metadata={"a": 1})
    )
    assert text == TextPart(
        id="prt_mine",
        session_id="ses_1",
        message_id="msg_1",
        text="hi",
        ignored=True,
        time=Span(start=1, end=2),
        metadata={"a": 1},
    )


async def test_a_subtask_is_stored_as_given(tmp_path: Path) -> None:
    given = SubtaskInput(id="prt_mine", prompt="look", description="a look", agent="explore", command="review")
    assert await resolved(tmp_path, given) == (
        SubtaskPart(
            id="prt_mine",
            session_id="ses_1",
            message_id="msg_1",
            prompt="look",
            description="a look",
            agent="explore",
            command="review",
        ),
    )


async def test_a_subtask_for_an_agent_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no agent 'nope'; the agents are: explore"):
        await resolved(tmp_path, SubtaskInput(prompt="look", description="a look", agent="nope"))


async def test_an_agent_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no agent 'nope'; the agents are: explore"):
        await resolved(tmp_path, AgentInput(name="nope"))


async def test_without_a_tool_that_calls_agents_the_model_does_the_work_itself(tmp_path: Path) -> None:
    parts = await resolved(tmp_path, AgentInput(name="explore"), has_task=False)
    [hint] = texts(parts[1:])
    assert hint == "The user asks for the agent explore here. No tool can call it, so do its work yourself."


@pytest.mark.parametrize("action", ["allow", "deny"])
async def test_an_agent_comes_with_a_hint_that_knows_of_a_denied_task(tmp_path: Path, action: Action) -> None:
    """A10."""
    rule = Rule(permission="task", pattern="explore", action=action)
    parts = await resolved(tmp_path, AgentInput(name="explore", source=NAMED), rules=(rule,))
    assert isinstance(parts[0], AgentPart)
    assert parts[0].source == NAMED
    [hint] = texts(parts[1:])
    assert "explore" in hint
    assert ("A rule keeps you" in hint) is (action == "deny")


async def test_a_text_file_is_read_as_the_tool_reads_it_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("alpha\nbeta\n")
    source = FileSource(path=str(path), text=NAMED)
    parts = await resolved(tmp_path, a_file(path, filename="a.txt", source=source, id="prt_file"))
    called, read = texts(parts[:2])
    assert f'{{"filePath":"{path}"}}' in called
    assert "1: alpha\n2: beta\n" in read
    assert parts[2:] == (
        FilePart(
            id="prt_file",
            session_id="ses_1",
            message_id="msg_1",
            mime="text/plain",
            filename="a.txt",
            url=path.as_uri(),
            source=source,
        ),
    )


@pytest.mark.parametrize(
    ("query", "shown", "hidden"),
    [
        ("?start=3&end=5", (3, 4, 5), (2, 6)),
        ("?start=29", (29, 30), (28,)),
        ("?start=0&end=2", (1, 2), (3,)),
        ("?end=2", (1, 2), (3,)),
        ("?start=7&end=7", (7,), (6, 8)),
        ("?start=9&end=4", (9,), (8, 10)),
        ("?start=words", (1, 30), ()),
    ],
)
async def test_a_range_of_lines_is_read(
    tmp_path: Path, query: str, shown: tuple[int, ...], hidden: tuple[int, ...]
) -> None:
    (tmp_path / "a.txt").write_text(LINES)
    parts = await resolved(tmp_path, a_file(tmp_path / "a.txt", query))
    _, read = texts(parts[:2])
    assert [number for number in (*shown, *hidden) if f"{number}: line {number}\n" in read] == list(shown)


async def test_a_symbol_is_read_by_the_lines_of_its_range(tmp_path: Path) -> None:
    """A9. The address names the symbol's first line only; language servers count from 0."""
    (tmp_path / "a.txt").write_text(LINES)
    source = SymbolSource(
        path="a.txt",
        range=Range(start=Position(line=9, character=0), end=Position(line=11, character=4)),
        name="f",
        kind=12,
        text=NAMED,
    )
    parts = await resolved(tmp_path, a_file(tmp_path / "a.txt", "?start=9&end=9", source=source))
    _, read = texts(parts[:2])
    assert [number for number in range(8, 15) if f"{number}: line" in read] == [10, 11, 12]


@pytest.mark.parametrize("name", ["C#.txt", "100% ü.txt", "what?.txt", "a b&c=d.txt"])
async def test_any_name_can_be_attached(tmp_path: Path, name: str) -> None:
    """A12."""
    (tmp_path / name).write_text("found")
    parts = await resolved(tmp_path, a_file(tmp_path / name, "?start=1&end=1"))
    assert "1: found" in texts(parts[:2])[1]


async def test_a_sign_that_should_have_been_encoded_is_still_understood(tmp_path: Path) -> None:
    """A12."""
    (tmp_path / "C#.txt").write_text("with")
    (tmp_path / "plain.txt").write_text("without")
    raw = f"file://{tmp_path}"
    parts = await resolved(
        tmp_path,
        FileInput(mime="text/plain", url=f"{raw}/C#.txt?start=1"),
        FileInput(mime="text/plain", url=f"{raw}/plain.txt#L1"),
        FileInput(mime="text/plain", url="file:plain.txt"),
    )
    assert ["1: with\n" in texts([parts[1]])[0], "1: without" in texts([parts[4]])[0]] == [True, True]
    assert "1: without" in texts([parts[7]])[0]


async def test_a_name_that_is_no_text_is_found_and_shown_in_whole_characters(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.txt"
    with open(path, "w") as file:
        file.write("found")
    parts = await resolved(tmp_path, FileInput(mime="text/plain", url=f"file://{tmp_path}/%FF.txt"))
    called, read = texts(parts[:2])
    assert "1: found" in read
    assert "\ufffd.txt" in called
    assert "\ufffd.txt" in read


async def test_a_file_outside_the_project_is_read_because_the_user_named_it(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / ".env").write_text("KEY=1")
    parts = await resolved(tmp_path / "inside", a_file(tmp_path / ".env"))
    assert "1: KEY=1" in texts(parts[:2])[1]


@pytest.mark.parametrize("mime", ["text/plain", "application/x-directory", "image/png"])
async def test_a_directory_is_listed_whatever_it_was_said_to_be(tmp_path: Path, mime: str) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/b.txt").touch()
    parts = await resolved(tmp_path, a_file(tmp_path / "inner", mime=mime))
    assert "b.txt" in texts(parts[:2])[1]
    assert isinstance(parts[2], FilePart)
    assert parts[2].mime == "application/x-directory"


@pytest.mark.parametrize("mime", ["text/plain", "application/x-directory", "image/png", "application/pdf"])
async def test_a_missing_file_becomes_a_notice_and_the_prompt_goes_on(tmp_path: Path, mime: str) -> None:
    """A6."""
    parts = await resolved(tmp_path, a_file(tmp_path / "gone.txt", mime=mime), TextInput(text="and this"))
    called, notice = texts(parts[:2])
    assert "gone.txt" in called
    assert "The read tool failed" in notice
    assert [part.text for part in parts[2:] if isinstance(part, TextPart)] == ["and this"]


@pytest.mark.parametrize("url", ["file://elsewhere/a.txt", "file:///a%00b", "file:"])
async def test_an_address_that_names_no_file_here_becomes_a_notice(tmp_path: Path, url: str) -> None:
    [notice] = texts(await resolved(tmp_path, FileInput(mime="text/plain", url=url)))
    assert "names no file of this machine" in notice


@pytest.mark.parametrize("mime", ["text/plain", "image/png", "application/pdf"])
async def test_a_pipe_is_never_waited_for(tmp_path: Path, mime: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    parts = await resolved(tmp_path, a_file(tmp_path / "pipe", mime=mime))
    assert "not a regular file" in texts(parts)[1]


async def test_a_binary_file_said_to_be_text_becomes_a_notice(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\0\1\2")
    parts = await resolved(tmp_path, a_file(tmp_path / "a.txt"))
    assert "binary" in texts(parts)[1]


@pytest.mark.parametrize("mime", ["text/markdown", "application/json", "image/svg+xml"])
async def test_text_of_any_type_is_read_as_text(tmp_path: Path, mime: str) -> None:
    (tmp_path / "a").write_text("words")
    parts = await resolved(tmp_path, a_file(tmp_path / "a", mime=mime))
    assert "1: words" in texts(parts[:2])[1]
    assert isinstance(parts[2], FilePart)
    assert parts[2].mime == "text/plain"


async def test_media_are_stored_with_their_content(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 pages")
    source = FileSource(path="a.pdf", text=NAMED)
    parts = await resolved(
        tmp_path, a_file(tmp_path / "a.pdf", mime="application/pdf", id="prt_pdf", filename="A", source=source)
    )
    assert "a.pdf" in texts(parts[:1])[0]
    [stored] = parts[1:]
    assert isinstance(stored, FilePart)
    assert (stored.id, stored.filename, stored.source, stored.mime) == ("prt_pdf", "A", source, "application/pdf")
    assert content_of(stored) == b"%PDF-1.7 pages"


async def test_a_document_is_stored_as_what_it_is_even_if_it_was_said_to_be_an_image(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"%PDF-1.7 pages")
    [_, stored] = await resolved(tmp_path, a_file(tmp_path / "a.png", mime="image/png"))
    assert isinstance(stored, FilePart)
    assert stored.mime == "application/pdf"
    assert stored.url.startswith("data:application/pdf;base64,")


async def test_media_too_large_for_any_model_become_a_notice(tmp_path: Path) -> None:
    with open(tmp_path / "a.pdf", "wb") as file:
        file.truncate(MEDIA_BYTES_MAX + 1)
    parts = await resolved(tmp_path, a_file(tmp_path / "a.pdf", mime="application/pdf"))
    assert "larger than" in texts(parts)[1]


@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "text/plain", "application/octet-stream"])
async def test_an_image_is_stored_as_what_it_is_whatever_it_was_said_to_be(tmp_path: Path, mime: str) -> None:
    (tmp_path / "a.png").write_bytes(png())
    *_, stored = await resolved(tmp_path, a_file(tmp_path / "a.png", mime=mime))
    assert isinstance(stored, FilePart)
    assert (stored.mime, stored.filename) == ("image/png", "a.png")
    assert content_of(stored) == png()


@pytest.mark.parametrize("mime", ["image/png", "text/plain"])
async def test_an_image_of_a_file_is_brought_within_the_limits(tmp_path: Path, mime: str) -> None:
    (tmp_path / "a.png").write_bytes(png(4000, 100))
    *_, stored = await resolved(tmp_path, a_file(tmp_path / "a.png", mime=mime))
    assert image_size(content_of(stored)) == (2000, 50)


async def test_an_image_in_the_address_is_brought_within_the_limits(tmp_path: Path) -> None:
    [kept, scaled] = await resolved(
        tmp_path,
        FileInput(mime="image/png", url=data_url(png()), filename="kept.png"),
        FileInput(mime="image/png", url=data_url(png(4000, 100)), id="prt_scaled"),
    )
    assert isinstance(kept, FilePart)
    assert (kept.url, kept.filename) == (data_url(png()), "kept.png")
    assert scaled.id == "prt_scaled"
    assert image_size(content_of(scaled)) == (2000, 50)


async def test_without_pillow_a_large_image_is_kept(tmp_path: Path) -> None:
    url = data_url(png(4000, 100))
    [kept] = await resolved(tmp_path, FileInput(mime="image/png", url=url), pillow=lambda: None)
    assert isinstance(kept, FilePart)
    assert kept.url == url


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("data:image/png;base64,", "is empty"),
        ("data:image/png;base64", "is empty"),
        ("data:image/png;base64,a", "cannot be decoded"),
        (data_url(b"words"), "convert it"),
        (data_url(png()[:20]), "convert it"),
    ],
)
async def test_what_is_no_image_is_refused(tmp_path: Path, url: str, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        await resolved(tmp_path, FileInput(mime="image/png", url=url, filename="a.png"))


async def test_an_image_file_too_large_to_read_is_refused(tmp_path: Path) -> None:
    """A7."""
    with open(tmp_path / "a.png", "wb") as file:
        file.truncate(IMAGE_READ_MAX + 1)
    with pytest.raises(Invalid, match=r"a\.png is larger than .* send a smaller image"):
        await resolved(tmp_path, a_file(tmp_path / "a.png", mime="image/png"))


async def test_text_in_the_address_is_decoded(tmp_path: Path) -> None:
    url = data_url("grüße".encode(), "text/plain")
    parts = await resolved(tmp_path, FileInput(mime="text/plain", url=url, filename="notes.txt"))
    called, text = texts(parts[:2])
    assert '"filePath":"notes.txt"' in called
    assert text == "grüße"
    assert isinstance(parts[2], FilePart)
    assert parts[2].url == url


async def test_text_in_the_address_that_cannot_be_decoded_becomes_a_notice(tmp_path: Path) -> None:
    parts = await resolved(tmp_path, FileInput(mime="text/plain", url="data:text/plain;base64,a"))
    assert "cannot be read" in texts(parts[:2])[1]


@pytest.mark.parametrize(
    ("mime", "url"),
    [
        ("image/png", "https://example.org/a.png"),
        ("application/pdf", "data:application/pdf;base64,JVBERg=="),
        ("audio/wav", "data:audio/wav;base64,UklGRg=="),
        ("image/png", "gopher://example.org"),
    ],
)
async def test_other_addresses_are_stored_unchanged(tmp_path: Path, mime: str, url: str) -> None:
    [stored] = await resolved(tmp_path, FileInput(mime=mime, url=url, filename="a"))
    assert isinstance(stored, FilePart)
    assert (stored.mime, stored.url, stored.filename) == (mime, url, "a")


@pytest.mark.parametrize(
    ("mime", "url"),
    [
        ("text/plain", "http://example.org/a.txt"),
        ("text/markdown", "https://example.org/a.md"),
        ("text/plain", "gopher://example.org"),
        ("application/x-directory", "https://example.org/"),
        ("application/x-directory", "data:,a"),
    ],
)
async def test_of_text_that_is_not_fetched_the_model_is_told(tmp_path: Path, mime: str, url: str) -> None:
    parts = await resolved(tmp_path, FileInput(mime=mime, url=url, filename="a"))
    [notice] = texts(parts[:1])
    assert notice == f"{url} was attached, and its content is not here: only file: and data: addresses are read."
    assert isinstance(parts[1], FilePart)
    assert (parts[1].url, parts[1].filename) == (url, "a")


@pytest.mark.parametrize("mime", ["text/plain", "image/png"])
async def test_a_path_in_the_place_of_an_address_is_refused_with_the_address(tmp_path: Path, mime: str) -> None:
    with pytest.raises(
        Invalid, match=f"'notes.txt' is no address of a file; write '{(tmp_path / 'notes.txt').as_uri()}"
    ):
        await resolved(tmp_path, FileInput(mime=mime, url="notes.txt"))


async def test_a_resource_without_its_server_becomes_a_notice_and_keeps_its_source(tmp_path: Path) -> None:
    source = ResourceSource(client_name="docs", uri="docs://guide", text=NAMED)
    parts = await resolved(tmp_path, FileInput(mime="text/plain", url="docs://guide", source=source))
    [notice] = texts(parts[:1])
    assert "docs://guide" in notice
    assert "'docs'" in notice
    assert isinstance(parts[1], FilePart)
    assert parts[1].source == source


async def test_parts_are_in_the_order_given_whichever_is_ready_first(tmp_path: Path) -> None:
    """A5. Large images take longest and stand first."""
    inputs: list[PartInput] = []
    for number in range(12):
        inputs.append(FileInput(mime="image/png", url=data_url(png(4000 - 300 * number, 300)), filename=str(number)))
        inputs.append(TextInput(text=str(number)))
    parts = await resolved(tmp_path, *inputs)
    said = [part.filename if isinstance(part, FilePart) else getattr(part, "text", None) for part in parts]
    assert said == [str(number // 2) for number in range(24)]
    assert [part.id for part in parts] == sorted(part.id for part in parts)


async def test_of_several_wrong_parts_the_first_is_told(tmp_path: Path) -> None:
    wrong = [FileInput(mime="image/png", url="data:image/png,", filename=name) for name in ("a", "b", "c")]
    with pytest.raises(Invalid, match=r"^a is empty"):
        await resolved(tmp_path, TextInput(text="look"), *wrong)


@pytest.mark.parametrize(("ids", "why"), [(("prt_1", "prt_1"), "same id"), (("msg_1",), "not a part id")])
async def test_ids_of_the_caller_are_checked(tmp_path: Path, ids: tuple[str, ...], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        await resolved(tmp_path, *(TextInput(id=one, text="a") for one in ids))
