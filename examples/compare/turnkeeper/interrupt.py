import turnkeeper

with turnkeeper.open_sync("memory:") as tk:
    with tk.stream("Tell me of the wind.") as answer:
        print(next(answer))
    print(tk.ask("Go on.", session=answer.session_id).text)
