from pydantic_ai import Agent

agent = Agent("openai:gpt-5-mini")
first = agent.run_sync("The wind is rising.")
for question in ("Reef?", "Turn back?"):
    print(agent.run_sync(question, message_history=first.all_messages()).output)
