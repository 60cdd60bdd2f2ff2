import turnkeeper

with turnkeeper.open_sync("memory:") as tk:
    first = tk.ask("The wind is rising.")
    for question in ("Reef?", "Turn back?"):
        print(tk.ask(question, session=tk.fork(first.session_id)).text)
