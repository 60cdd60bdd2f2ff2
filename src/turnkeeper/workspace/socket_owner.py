"""Socket owners: whether a command of a model holds the other end of a local connection. On Linux only."""

import os
import sys
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, Literal, TypeAlias

from turnkeeper.workspace.guard import descendants

Owner: TypeAlias = Literal["command", "other", "unknown"]
"""Kind of the holder; ``unknown`` if the holder of a local connection has ended or is hidden."""

Address: TypeAlias = tuple[str, int]
"""The host and the port of one end of a connection."""

_TRIES: Final = 3
_FORWARDER: Final = "sshd"
"""Serves forwarded ports as the user, and hides its sockets from other processes."""


def owner(client: Address, server: Address, guards: Sequence[int]) -> Owner:
    """The kind of process at the client's end of a connection to this one; ``guards`` are those of models' commands."""
    if sys.platform != "linux":
        return "other"
    found = _entry(client, server)
    if found is None:
        return "unknown" if _is_local(client, server) else "other"
    user, inode = found
    if inode == 0:  # Closed already.
        return "unknown"
    if user != os.geteuid() != 0:  # A command of root may have become another user; nobody else's can.
        return "other"
    for _ in range(_TRIES):
        said = _holder(f"socket:[{inode}]", guards)
        if said is not None:
            return said
    return "unknown"


def _holder(name: str, guards: Sequence[int]) -> Owner | None:
    """The kind of process that holds a socket; None if it ended while the commands were listed."""
    holders, hidden = _holders(name)
    commands = descendants(guards)
    if any(one in commands for one in holders):
        return "command"
    if holders:
        # A process that existed before and after the commands were listed, and is not in the list, is no command.
        return "other" if any(_holds(one, name) for one in holders) else None
    if any(one in commands for one in hidden):
        return "unknown"
    return "other" if any(_is_forwarder(one) for one in hidden) else "unknown"


def _holders(name: str) -> tuple[list[int], list[int]]:
    """The processes that hold a socket, and those whose sockets may not be read."""
    holders, hidden = [], []
    for number in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        try:
            if _holds(number, name):
                holders.append(number)
        except PermissionError:
            hidden.append(number)
    return holders, hidden


def _holds(number: int, name: str) -> bool:
    """Whether a process holds a socket. Raises PermissionError if its sockets may not be read."""
    folder = f"/proc/{number}/fd"
    try:
        for one in os.listdir(folder):
            try:
                if os.readlink(f"{folder}/{one}") == name:
                    return True
            except FileNotFoundError:
                continue
    except (FileNotFoundError, ProcessLookupError):
        pass
    return False


def _is_forwarder(number: int) -> bool:
    try:
        with open(f"/proc/{number}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().startswith(_FORWARDER)
    except OSError:
        return False


def _entry(client: Address, server: Address) -> tuple[int, int] | None:
    """The user and the inode of the client's socket, if it is one of this machine. A closed one has the inode 0."""
    for table, is_wide in (("tcp", False), ("tcp6", True)):
        for local in _spelled(client, is_wide=is_wide):
            for remote in _spelled(server, is_wide=is_wide):
                try:
                    with open(f"/proc/self/net/{table}", encoding="ascii") as file:
                        lines = [line.split() for line in file if local in line]
                except OSError:
                    continue
                for fields in lines:
                    if fields[1:3] == [local, remote]:
                        return int(fields[7]), int(fields[9])
    return None


def _spelled(address: Address, *, is_wide: bool) -> Iterator[str]:
    """An address as the kernel lists it, in a table of this width."""
    parsed = _parsed(address[0])
    if parsed is None or (isinstance(parsed, IPv6Address) and not is_wide):
        return
    packed = b"\0" * 10 + b"\xff\xff" + parsed.packed if is_wide and parsed.version == 4 else parsed.packed
    words = [int.from_bytes(packed[start : start + 4], sys.byteorder) for start in range(0, len(packed), 4)]
    yield "".join(f"{word:08X}" for word in words) + f":{address[1]:04X}"


def _is_local(client: Address, server: Address) -> bool:
    parsed = _parsed(client[0])
    return parsed is None or parsed.is_loopback or parsed == _parsed(server[0])


def _parsed(host: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return parsed.ipv4_mapped or parsed if isinstance(parsed, IPv6Address) else parsed
