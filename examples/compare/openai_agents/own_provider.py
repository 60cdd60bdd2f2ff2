from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText


class Own(Model):
    async def get_response(self, *args: Any, **given: Any) -> ModelResponse:
        text = ResponseOutputText(type="output_text", text="The wind is west.", annotations=[])
        said = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **given: Any) -> Any:
        raise NotImplementedError


print(Runner.run_sync(Agent(name="Pilot", model=Own()), "Where is the wind?").final_output)
