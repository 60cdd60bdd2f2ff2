from agents import Agent, Runner
from pydantic import BaseModel


class Wind(BaseModel):
    direction: str
    force: int


print(Runner.run_sync(Agent(name="Pilot", output_type=Wind), "Where is the wind?").final_output.force)
