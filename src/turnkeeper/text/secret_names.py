"""Secret names: variables, settings and headers that hold a secret by their name, and the values of ``.env`` files."""

import re
from typing import Final

_KEYS: Final = (
    "api|access|auth|signing|encryption|session|account|private|secret|app|application|admin|licen[sc]e|deploy|master"
    "|service|storage|preshared|subscription|hmac|root|server|shared[_-]?access|unseal|write"
)
_WORDS: Final = (
    rf"(?:{_KEYS})[_-]?key|secret|token|passw(?:or)?d|passphrase|pwd|credentials?|connection[_-]?string|secret_key_base"
    r"|(?:auth|nonce|secure|logged_in)_salt|private key|private_key_id"
)
_END: Final = r"(?:[_-]?(?:key|value|hash|base64|b64|old|new|prod|dev|\d{1,3}))?"

SECRET_NAME: Final = rf"(?:{_WORDS}){_END}"
"""The end of a name of a secret, as in ``aws_secret_access_key``; to be matched without regard to case."""

_NAME: Final = re.compile(rf"(?:.*[_.-])?(?:{_WORDS}|authorization|cookie|dsn|pass|auth){_END}", re.I | re.S)
_VARIABLE: Final = re.compile(
    r"(?:(?:KEY|TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)|(?:^|_)(?:PASS|PWD|DSN|AUTH|COOKIE|PAT|WEBHOOK))"
    r"(?:_(?:ID|VALUE|BASE64|B64|OLD|NEW|PROD|DEV|\d+))?$"
)
_HARMLESS_VARIABLES: Final = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})

_LINE: Final = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*=[ \t]*"
    r"(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\r\n]*?))[ \t]*(?:\s#[^\r\n]*)?$",
    re.M,
)
_PLAIN: Final = re.compile(r"[A-Za-z]{1,20}|\d{1,7}|[\d.]{1,12}|(?:true|false|null|none|yes|no|on|off)", re.I)
_PLACEHOLDER: Final = re.compile(
    r"(?:<.*>?|\[.*|\$.*|%.*|\{.*|x{3,}.*|\*{3,}.*|\.{3,}.*|-{3,}(?!-*BEGIN ).*"
    r"|none|null|nil|true|false|undefined|string|str|secret|password|passwd|token|key)",
    re.I | re.S,
)
_STANDS_FOR_ANOTHER: Final = re.compile(r"your|example|placeholder|change[_-]?me|dummy|redacted|todo", re.I)

SHORT: Final = 6
"""A value of an ``.env`` file with fewer characters is masked only under a secret name."""


def is_secret_name(name: str) -> bool:
    """Whether a key of an object names a secret: ``apiKey``, ``client_secret``."""
    return _NAME.fullmatch(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)) is not None


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable holds a secret by its name: ``OPENAI_API_KEY``."""
    upper = name.upper()
    return upper not in _HARMLESS_VARIABLES and _VARIABLE.search(upper) is not None


def is_placeholder(value: str) -> bool:
    """Whether a value is a placeholder for another one: ``<token>``, ``$TOKEN``, ``changeme``."""
    value = value.strip()
    return not value or _PLACEHOLDER.fullmatch(value) is not None or _STANDS_FOR_ANOTHER.search(value) is not None


def env_values(text: str) -> dict[str, str]:
    """The values of an ``.env`` file by name that are worth hiding.

    Under the name of a secret that is all but placeholders. Else words, numbers and switches are left out: hidden
    wherever they occur, they would take the sense out of a text.
    """
    found: dict[str, str] = {}
    for match in _LINE.finditer(text):
        name, value = match[1], next((one for one in match.groups()[1:] if one is not None), "").strip()
        is_secret = is_secret_variable(name) and len(value) >= 4
        is_odd = len(value) >= SHORT and _PLAIN.fullmatch(value) is None
        if (is_secret or is_odd) and not is_placeholder(value):
            found[name] = value
    return found
