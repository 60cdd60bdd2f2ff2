import turnkeeper


def answer(request: turnkeeper.ModelRequest) -> str:
    return "The wind is west."


with turnkeeper.open_sync("memory:", provider=turnkeeper.provider(answer)) as tk:
    print(tk.ask("Where is the wind?").text)
