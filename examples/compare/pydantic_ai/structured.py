from pydantic import BaseModel
from pydantic_ai import Agent


class Wind(BaseModel):
    direction: str
    force: int


print(Agent("openai:gpt-5-mini", output_type=Wind).run_sync("Where is the wind?").output.force)
