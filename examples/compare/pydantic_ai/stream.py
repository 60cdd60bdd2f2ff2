from pydantic_ai import Agent

with Agent("openai:gpt-5-mini").run_stream_sync("Where is the wind?") as result:
    for piece in result.stream_text(delta=True):
        print(piece, end="", flush=True)
