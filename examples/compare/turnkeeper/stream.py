import turnkeeper

with turnkeeper.open_sync("memory:") as tk:
    for piece in tk.stream("Where is the wind?"):
        print(piece, end="", flush=True)
