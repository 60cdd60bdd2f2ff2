from agents import Agent, Runner

agent = Agent(name="Pilot", model="gpt-5-mini")
first = Runner.run_sync(agent, "The wind is rising.")
for question in ("Reef?", "Turn back?"):
    asked = [*first.to_input_list(), {"role": "user", "content": question}]
    print(Runner.run_sync(agent, asked).final_output)
