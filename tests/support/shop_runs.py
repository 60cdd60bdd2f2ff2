"""Commands in processes of their own, whose model is a scripted server behind real HTTP."""

import json
import subprocess
from typing import Any

import anyio
from cli_store import command
from workshop import Shop

from turnkeeper.testing.server import ScriptedServer

KEY = "sk-of-the-test"
MODELS = {
    "anthropic": ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY", "x-api-key"),
    "openai-responses": ("openai/gpt-5", "OPENAI_API_KEY", "authorization"),
    "openai-chat": ("groq/llama-3.3-70b-versatile", "GROQ_API_KEY", "authorization"),
    "gemini": ("google/gemini-2.5-pro", "GEMINI_API_KEY", "x-goog-api-key"),
}


def environ(shop: Shop, server: ScriptedServer, protocol: str = "anthropic") -> dict[str, str]:
    model, variable, _ = MODELS[protocol]
    provider = model.partition("/")[0]
    config = {"model": model, "provider": {provider: {"options": {"baseURL": server.url}}}}
    return shop.environ(**{variable: KEY, "TURNKEEPER_CONFIG_CONTENT": json.dumps(config)})


async def run(shop: Shop, env: dict[str, str], *words: str) -> "subprocess.CompletedProcess[bytes]":
    with anyio.fail_after(60):
        return await anyio.run_process(
            command(*words), env=env, cwd=shop.project, stdin=subprocess.DEVNULL, check=False, stderr=subprocess.PIPE
        )


async def history(shop: Shop, env: dict[str, str]) -> tuple[str, list[dict[str, Any]]]:
    listed = json.loads((await run(shop, env, "session", "list", "--json")).stdout)
    session_id = listed["items"][0]["id"]
    page = json.loads((await run(shop, env, "session", "messages", session_id, "--json")).stdout)
    parts = [part for one in page["items"] if one["info"]["role"] == "assistant" for part in one["parts"]]
    return session_id, parts
