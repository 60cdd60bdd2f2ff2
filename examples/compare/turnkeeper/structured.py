import turnkeeper


class Wind(turnkeeper.Struct):
    direction: str
    force: int


with turnkeeper.open_sync("memory:") as tk:
    print(tk.ask("Where is the wind?", output_type=Wind).output.force)
