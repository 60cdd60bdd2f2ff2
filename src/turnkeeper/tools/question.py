"""question: asks the user, with options to choose from, and waits for the answers."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from turnkeeper.model.question import Option, Question
from turnkeeper.model.value import Value
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text

HEADER_CHARS_MAX: Final = 30
QUESTIONS_MAX: Final = 10
UNANSWERED: Final = "no answer"


class OptionEntry(Value):
    """One answer that can be chosen."""

    label: Annotated[str, Meta(description="What the user chooses, in one to five words.")]
    description: Annotated[str, Meta(description="What choosing it means.")] = ""


class QuestionEntry(Value):
    """One question."""

    question: Annotated[str, Meta(description="The question, whole and clear.")]
    header: Annotated[str, Meta(description=f"A title of at most {HEADER_CHARS_MAX} characters.")] = ""
    options: Annotated[tuple[OptionEntry, ...], Meta(description="The answers to choose from.")] = ()
    multiple: Annotated[bool, Meta(description="Whether several options may be chosen.")] = False
    custom: Annotated[bool, Meta(description="Whether the user may type another answer.")] = True


class QuestionArguments(Value):
    """The questions."""

    questions: Annotated[tuple[QuestionEntry, ...], Meta(description="The questions, which are asked together.")]


async def execute(arguments: QuestionArguments, context: ToolContext) -> ToolOutput:
    """Ask, and wait for the answers."""
    await context.ask("question", ["*"], always=["*"], metadata={})
    asked = tuple(map(_question, arguments.questions))
    if not asked or len(asked) > QUESTIONS_MAX:
        raise ToolFailure(f"Ask 1 to {QUESTIONS_MAX} questions at once, not {len(asked)}.")
    answers = await context.question(asked)
    pairs = [(one.question, ", ".join(given) or UNANSWERED) for one, given in zip(asked, answers, strict=True)]
    said = "\n".join(f'"{question}"="{answer}"' for question, answer in pairs)
    plural = "" if len(asked) == 1 else "s"
    return ToolOutput(
        title=f"Asked {len(asked)} question{plural}",
        output=f"The user answered:\n{said}\nGo on by these answers.",
        metadata={"answers": msgspec.to_builtins(answers)},
    )


def _question(entry: QuestionEntry) -> Question:
    if not entry.question.strip():
        raise ToolFailure("A question has no words. Write it out, and call again.")
    if not entry.options and not entry.custom:
        raise ToolFailure(f"{entry.question!r} has no options and takes no answer of the user's own. Give options.")
    return Question(
        question=entry.question,
        header=(entry.header or entry.question)[:HEADER_CHARS_MAX],
        options=tuple(Option(label=one.label, description=one.description) for one in entry.options),
        multiple=entry.multiple or None,
        custom=None if entry.custom else False,
    )


QUESTION: Final = Tool(
    name="question",
    description=text("question"),
    parameters=QuestionArguments,
    execute=execute,
    permission="question",
    read_only=True,
)
