from pydantic_ai import Agent

agent = Agent("openai:gpt-5-mini")
with agent.run_stream_sync("Tell me of the wind.") as result:
    print(next(result.stream_text(delta=True)))
print(agent.run_sync("Go on.", message_history=[*result.all_messages(), result.response]).output)
