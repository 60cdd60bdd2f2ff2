from agents import Agent, Runner
from pydantic import BaseModel


class Wind(BaseModel):
    direction: str
    force: int


agent = Agent(name="Pilot", model="gpt-5-mini", output_type=Wind)
print(Runner.run_sync(agent, "Where is the wind?").final_output.force)
