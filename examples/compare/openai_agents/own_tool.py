from agents import Agent, Runner, function_tool


@function_tool
def tide(place: str) -> str:
    """When the tide is high."""
    return f"6:12 at {place}"


agent = Agent(name="Pilot", model="gpt-5-mini", tools=[tide])
print(Runner.run_sync(agent, "When is high tide in the bay?").final_output)
