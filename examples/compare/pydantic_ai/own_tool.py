from pydantic_ai import Agent


def tide(place: str) -> str:
    """When the tide is high."""
    return f"6:12 at {place}"


print(Agent("openai:gpt-5-mini", tools=[tide]).run_sync("When is high tide in the bay?").output)
