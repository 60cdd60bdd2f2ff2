from agents import Agent, Runner

agent = Agent(name="Pilot")
first = Runner.run_sync(agent, "The wind is rising.")
for question in ("Reef?", "Turn back?"):
    print(Runner.run_sync(agent, [*first.to_input_list(), {"role": "user", "content": question}]).final_output)
