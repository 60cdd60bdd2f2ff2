from agents import Agent, Model, ModelResponse, Runner, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText


class Own(Model):
    async def get_response(self, *args, **given):
        text = ResponseOutputText(type="output_text", text="The wind is west.", annotations=[])
        said = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    async def stream_response(self, *args, **given):
        raise NotImplementedError


print(Runner.run_sync(Agent(name="Pilot", model=Own()), "Where is the wind?").final_output)
