"""The client of a server: sessions as Python values, over HTTP or in memory.

async with Client("http://127.0.0.1:4096") as client:
    session = await client.create(title="Fix the parser")
    answer = await client.prompt(session.id, "read parser.py")
"""

from turnkeeper.client.client import Client

__all__ = ["Client"]
