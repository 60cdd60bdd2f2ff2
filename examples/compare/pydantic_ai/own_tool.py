from pydantic_ai import Agent


def tide(place: str) -> str:
    """When the tide is high."""
    return f"6:12 at {place}"


agent = Agent("openai-responses:gpt-5-mini", tools=[tide])
print(agent.run_sync("When is high tide in the bay?").output)
