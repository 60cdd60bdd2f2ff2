"""System Context: one file per Context Component. A new one is a file here and a line in BUILT_IN."""

from turnkeeper.context.component import ContextComponent, Family
from turnkeeper.context.date import DATE
from turnkeeper.context.environment import ENVIRONMENT
from turnkeeper.context.files import FILES
from turnkeeper.context.instructions import INSTRUCTION_FILES
from turnkeeper.context.mcp import MCP
from turnkeeper.context.mode import MODE
from turnkeeper.context.prompt import PROMPT
from turnkeeper.context.skills import SKILLS

BUILT_IN: tuple[ContextComponent | Family, ...] = (
    PROMPT,
    ENVIRONMENT,
    FILES,
    DATE,
    INSTRUCTION_FILES,
    MCP,
    SKILLS,
    MODE,
)
"""The built-in components, in the order in which the model gets them."""
