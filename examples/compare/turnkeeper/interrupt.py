import turnkeeper

with turnkeeper.open_sync("memory:") as tk:
    session = tk.create()
    print(next(tk.stream("Tell me of the wind.", session=session)))
    tk.stop(session.id)
    print(tk.ask("Go on.", session=session).text)
