import turnkeeper


def tide(place: str) -> str:
    """When the tide is high."""
    return f"6:12 at {place}"


print(turnkeeper.ask_sync("When is high tide in the bay?", tools=[tide]).text)
