import turnkeeper


def tide(place: str) -> str:
    """When the tide is high."""
    return f"6:12 at {place}"


with turnkeeper.open_sync("memory:", tools=[tide]) as tk:
    print(tk.ask("When is high tide in the bay?").text)
