from agents import Agent, Runner, function_tool


@function_tool
def tide(place: str) -> str:
    """When the tide is high."""
    return f"6:12 at {place}"


print(Runner.run_sync(Agent(name="Pilot", tools=[tide]), "When is high tide in the bay?").final_output)
