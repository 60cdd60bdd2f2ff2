"""NOTIFY: lines of text packed into payloads below its limit; each payload begins with the name of its writer."""

from collections.abc import Iterable, Iterator
from typing import Final

from turnkeeper.store.engines.postgres.connection import Connection

PAYLOAD_BYTES_MAX: Final = 7900
"""Postgres takes payloads below 8,000 bytes."""


def notify(connection: Connection, channel: str, payloads: Iterable[str]) -> None:
    """Send payloads in one statement, in their order."""
    connection.execute("SELECT pg_notify(%s, sent) FROM unnest(%s::text[]) AS sent", (channel, list(payloads)))


def packed(writer: str, lines: Iterable[str]) -> Iterator[str]:
    """Lines in as few payloads as the limit allows."""
    batch, size = [writer], len(writer)
    for line in lines:
        length = len(line.encode()) + 1
        if size + length > PAYLOAD_BYTES_MAX and len(batch) > 1:
            yield "\n".join(batch)
            batch, size = [writer], len(writer)
        batch.append(line)
        size += length
    if len(batch) > 1:
        yield "\n".join(batch)


def unpacked(heard: Iterable[str], own: str) -> list[str]:
    """The lines of others in payloads."""
    found: list[str] = []
    for payload in heard:
        writer, *lines = payload.split("\n")
        if writer != own:
            found += lines
    return found
