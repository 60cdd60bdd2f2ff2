"""The address of a Postgres store: what the driver connects to, the schema of the store, and what people are shown."""

import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from turnkeeper.store.engine_table import HIDDEN, shown_store

DEFAULT_SCHEMA: Final = "turnkeeper"

_SCHEMA_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_DRIVER_DEFAULTS: Final = {
    "application_name": "turnkeeper",
    "connect_timeout": "10",
    # A host that is gone without a word is noticed within half a minute, not after hours.
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


class Address(NamedTuple):
    """Where a store is."""

    parameters: dict[str, str]
    """The connection parameters of the driver: host, database, user, password and other options of libpq."""
    schema: str
    """The Postgres schema that holds the tables. Several stores may be in one database."""
    shown: str
    """The address without its password."""

    def without_password(self, text: str) -> str:
        """A text of the driver or the server, in which the password does not occur."""
        password = self.parameters.get("password", "")
        return text.replace(password, HIDDEN) if len(password) > 2 else text


def parse(url: str) -> Address:
    """The address that a URL has. Raises ValueError, without the password."""
    shown = shown_store(url)
    if not re.match(r"postgres(ql)?://", url):
        raise ValueError(f"{shown!r} is not the address of a Postgres store; write 'postgresql://USER@HOST/DATABASE'")
    base, _, query = url.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    schema = next((value for name, value in options if name == "schema"), DEFAULT_SCHEMA)
    if not _SCHEMA_NAME.fullmatch(schema):
        raise ValueError(f"{schema!r} in {shown!r} cannot be a schema; it has small letters, digits and '_' only")
    if schema.startswith("pg_"):
        raise ValueError(f"{schema!r} in {shown!r} is a schema of Postgres itself; name another one")
    rest = urlencode([(name, value) for name, value in options if name != "schema"])
    try:
        given = conninfo_to_dict(f"{base}?{rest}" if rest else base)
    except psycopg.ProgrammingError:
        # Not chained: the message of the driver quotes the part that it could not read, which may be the password.
        raise ValueError(
            f"{shown!r} cannot be read as an address; characters such as '@', '/' and '%' in a name or password are "
            "written as %40, %2F and %25, and the options after '?' are those of libpq"
        ) from None
    parameters = {name: str(value) for name, value in given.items() if value is not None}
    return Address({**_DRIVER_DEFAULTS, **parameters, "client_encoding": "UTF8"}, schema, shown)
