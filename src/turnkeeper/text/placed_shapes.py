"""Placed shapes: values at the places of secrets, in headers, addresses, commands and files."""

import re
from typing import Final

from turnkeeper.text.secret_names import SECRET_NAME
from turnkeeper.text.shape import (
    API_KEY,
    OPEN,
    PASSWORD,
    PRIVATE_KEY,
    TOKEN,
    URL_LOGIN,
    Shape,
    after,
    entropy,
    is_chosen,
    is_password,
    is_random,
    is_value,
)


def _is_login(value: str) -> bool:
    is_role = value in ("git", "hg", "svn", "anonymous") or re.fullmatch("[A-Z]{1,12}", value) is not None
    return not is_role and not re.search(r"[{}$<>*\\|()]|%[sd]", value)


def _is_cookie(value: str) -> bool:
    return "=" in value and any(is_random(one.partition("=")[2].strip()) for one in value.split(";"))


_ARGUMENT: Final = r"[\"']?(?P<v>[^\s\"'`$|<>-][^\s\"'`|<>]{3,})"
"""An argument of a command, which may be quoted."""

_NEAR: Final = r"[^\n]{0,60}?(?<![\w./@%+-])"
_TECHNICAL: Final = re.compile(
    r"(?:sha|md|rfc|base|utf|aes|rsa|ed|x|pbkdf|argon|win|u?int|float|python|py|tls|ipv|line|port|issue|step|http|iso"
    r"|latin|cp|version|v|part|test|level|chapter|section|example|step|es|msg|ses|prt)[-_]?\d[\w.-]*|[\d.:-]+[a-z]?|[\d.,]+\w{1,3}"
    r"|[a-z]+(?:_[a-z]+)*_?\d{1,2}|\d{4}-\d\d.*|0x[0-9a-f]+|[a-f0-9]{7,64}|[\w-]+\.(?:py|js|ts|md|json|toml|txt|html|c|h|go|rs)",
    re.I,
)
"""Technical words with digits, which are not passwords: names of methods, versions, dates, hashes, files."""


def _is_mixed(value: str) -> bool:
    """Whether a word near the word "password" is a password: letters and digits, and no technical term."""
    return is_chosen(value) and any(map(str.isalpha, value)) and _TECHNICAL.fullmatch(value) is None


def _is_key(value: str) -> bool:
    """Whether a long word near a secret name is a secret: all kinds of characters, or many hexadecimal digits."""
    kinds = any(map(str.islower, value)) and any(map(str.isupper, value)) and any(map(str.isdigit, value))
    is_hex = len(value) >= 32 and re.fullmatch("[0-9a-f]+", value) is not None
    return (kinds or is_hex) and is_random(value) and entropy(value) >= 3.2 and _OWN_ID.match(value) is None


_OWN_ID: Final = re.compile(r"(?:ses|msg|prt|per|que|evt|call)_")

NEAR: Final = (
    Shape(
        PASSWORD,
        ("password", "passwd", "passphrase", "passwort", "kennwort"),
        re.compile(
            rf"pass[a-z]{{2,6}}{_NEAR}(?P<v>(?=[^\s\"'`<>()\[\]{{}},;|=:/\\]*\d\d)[A-Za-z0-9][^\s\"'`<>()\[\]{{}},;|=:/\\]{{6,60}})(?![\w(\[/=])",
            re.I,
        ),
        _is_mixed,
    ),
    Shape(
        TOKEN,
        (
            "secret",
            "token",
            "api_key",
            "api-key",
            "apikey",
            "api key",
            "auth",
            "credential",
            "private key",
            "-key",
            "_key",
            "fernet(",
            "jwt",
        ),
        re.compile(rf"[a-z_ (-]{{2,12}}{_NEAR}(?P<v>[A-Za-z0-9+/_-]{{20,200}}+={{0,2}})(?![\w(./@-])", re.I),
        _is_key,
    ),
    after(
        "private~key private_key privatekey",
        r"private[ _]?key[^\n]{0,40}?(?<![0-9a-z])(?P<v>(?:0x)?[0-9a-f]{64})(?![0-9a-z])",
        PRIVATE_KEY,
        bool,
    ),
    after(
        "login: credentials: credential: user/pass",
        r"[a-z/]{3,14}(?: is|:) \S{1,40}?(?:[/:]| / )(?P<v>[^\s/:\"'`<>]{4,60})(?=\s|$|[\"'`<,;])",
        PASSWORD,
        is_chosen,
    ),
    after(":", r":(?P<v>[^\s:@/\"'`]{4,80})@(?:tcp|unix)\(", PASSWORD, is_value),
    after("sqlplus~", r"sqlplus (?:-\w+ )*[\w$]+/(?P<v>[^\s@\"']{4,80})@", PASSWORD, is_value),
    after("-key~ -key= -passphrase -token -secret -password", rf"-[a-z]{{3,12}}(?:=|\s+){_ARGUMENT}"),
)

HEADERS: Final = (
    after("bearer", r"bearer\s+(?P<v>[A-Za-z0-9._~+/=-]{12,})", TOKEN),
    after("basic", r"basic\s+(?P<v>[A-Za-z0-9+/]{12,}={0,2})"),
    after('"auth', r"\"auth\\*\"\s*:\s*\\*\"(?P<v>[A-Za-z0-9+/]{12,}={0,2})"),
    after("authorization", rf"authorization{OPEN}\s*[:=]\s*{OPEN}(?:[a-z]+ )?(?P<v>[^\s\"'`\\,;]{{8,}})", TOKEN),
    after("cookie", rf"cookie{OPEN}\s*(?::|=(?!=))\s*{OPEN}(?P<v>[^\r\n\"'`\\\x1b<]{{8,}})", TOKEN, _is_cookie),
    after("://", r"://(?P<v>[^\s/?#@\"'`<>]{1,300})@", URL_LOGIN, _is_login),
    after("jdbc:oracle:", r"jdbc:oracle:\w+:[\w.-]+/(?P<v>[^\s@\"']{4,})@", PASSWORD, bool),
    after(
        "?key= &key= ?sig= &sig= signature= ?code= &code= security-token=",
        r"[?&a-z-]+=(?P<v>[^&\s\"'`<>#\\]{6,})",
        TOKEN,
    ),
)

COMMANDS: Final = (
    after(
        "-password -passwd -passphrase -token -secret -api-key -apikey -access-key -auth-token -authkey -storepass"
        " -keypass -client-secret -http-password -pass",
        rf"(?<=[\s-])-[a-z-]{{4,14}}(?:=|\s+){_ARGUMENT}",
        PASSWORD,
        lambda value: is_password(value) or (is_chosen(value) and value.islower() and "-" not in value[:1]),
    ),
    after(
        "curl~ wget~",
        r"[a-z]{4} [^\n]{0,500}?(?:-u|--user|--proxy-user)[= ]?[\"']?(?P<v>[^\s:\"']+:[^\s\"'$]{3,})",
        PASSWORD,
        bool,
    ),
    after("curl~", r"curl\b[^\n]{0,500}?\s(?:-b|--cookie)[= ]?[\"'](?P<v>[^\"'\n]{8,})", TOKEN, _is_cookie),
    after("sshpass", rf"sshpass\s+-p\s*{_ARGUMENT}", PASSWORD, bool),
    after("mysql mariadb", r"[a-z]{4,12}\b[^\n]{0,500}?\s-p[\"']?(?P<v>[^\s\"'$]{4,})", PASSWORD, is_chosen),
    after("login mongo twine", rf"[a-z]{{3,12}}\b[^\n]{{0,300}}?\s-p[= ]?{_ARGUMENT}", PASSWORD, is_chosen),
    after("login~", r"login\s+\S{1,200}\s+password\s+(?P<v>[^\s\"'\\]{4,})", PASSWORD, is_chosen),
    after("vault~login cargo~login", rf"[a-z]{{3,8}} login\s+{_ARGUMENT}", TOKEN),
    after("ldap", rf"ldap[a-z]{{2,8}}\b[^\n]{{0,300}}?\s-w\s+{_ARGUMENT}", PASSWORD, is_value),
    after("htpasswd~", rf"htpasswd\s+-\w*b\w*\s+\S+\s+\S+\s+{_ARGUMENT}", PASSWORD, is_value),
    after("--with-token --password-stdin", rf"--[a-z-]{{10,14}}\s+<<<\s*{_ARGUMENT}", PASSWORD, is_value),
    after("requirepass~ masterauth~", rf"[a-z]{{10,11}}\s+{_ARGUMENT}", PASSWORD, is_chosen),
    after("netlify~ doctl~", rf"[a-z]{{3,12}}\b[^\n]{{0,300}}?\s(?:--auth|-t)[= ]{_ARGUMENT}", TOKEN),
    after("redis-cli", rf"redis-cli\b[^\n]{{0,300}}?\s-a\s+{_ARGUMENT}", PASSWORD, is_value),
    after("sqlcmd bcp~ zip~ 7z~", rf"[a-z0-9]{{2,12}}\b[^\n]{{0,300}}?\s-P\s*{_ARGUMENT}", PASSWORD, is_chosen),
    after("openssl~", rf"openssl [^\n]{{0,300}}?(?:\s-k\s+|\bpass:){_ARGUMENT}", PASSWORD, is_value),
    after(
        "echo~ printf~",
        rf"[a-z]{{4,6}}\s+(?:-n\s+)?{_ARGUMENT}[\"']?\s*\|\s*(?:[^\n|]{{0,200}}--password-stdin|sudo\s+-S|[^\n|]{{0,80}}--with-token)",
        PASSWORD,
        is_value,
    ),
    after("convertto-securestring", rf"convertto-securestring\s+(?:-string\s+)?{_ARGUMENT}", PASSWORD, is_value),
    after("::add-mask::", r"::add-mask::(?P<v>\S{4,})", PASSWORD, is_value),
    after(
        "password~ identified~by", r"(?:password|identified by)\s+(['\"])(?P<v>[^'\"\n]{4,200})\1", PASSWORD, is_value
    ),
    after(
        "set~ setx~ setenv~ env~ arg~",
        rf"[a-z]{{3,6}}\s+(?:-[a-z]{{1,4}}\s+)?[a-z_]{{0,40}}(?:{SECRET_NAME})\s+{_ARGUMENT}",
        PASSWORD,
        is_chosen,
    ),
)

FILES: Final = (
    after('"pass', r"\"pass\\*\"\s*:\s*\\*\"(?P<v>[^\"\\\s]{4,})", PASSWORD, is_chosen),
    Shape(
        PASSWORD, ("password>", "passwd>", "passphrase>"), re.compile(r"\w+>(?P<v>[^<>\s]{4,300})</", re.I), is_value
    ),
    Shape(
        PASSWORD,
        ("secret>", "token>", "apikey>", "accesskey>"),
        re.compile(r"\w+>(?P<v>[^<>\s]{8,300})</", re.I),
        is_random,
    ),
    Shape(
        PASSWORD,
        ("name=", "key="),
        re.compile(
            rf"(?:name|key)=\\?[\"'][\w.-]*(?:{SECRET_NAME})\\?[\"']\s+value=\\?[\"'](?P<v>[^\"'\\\n]{{4,300}})", re.I
        ),
        is_value,
    ),
    Shape(
        PASSWORD,
        ("variable ",),
        re.compile(
            rf"variable \\?\"\w*(?:{SECRET_NAME})\\?\"\s*"
            rf"\{{[^{{}}]{{0,400}}?\bdefault\s*=\s*\\?\"(?P<v>[^\"\\\n]{{4,300}})",
            re.I,
        ),
        is_value,
    ),
    after(
        "define( env(",
        r"[a-z]{3,40}\(\s*(['\"])\w*(?:KEY|SALT|PASSWORD|PASS|SECRET|TOKEN)\1\s*,\s*(['\"])(?P<v>[^'\"\n]{6,200})\2",
        PASSWORD,
        is_value,
    ),
    after(
        "auth=( auth~=~( auth(",
        r"auth ?=? ?\(\s*[\"'][^\"'\n]{1,80}[\"']\s*,\s*[\"'](?P<v>[^\"'\n]{4,200})[\"']",
        PASSWORD,
        is_chosen,
    ),
    after("_auth", r"_auth\s*=\s*[\"']?(?P<v>[A-Za-z0-9+/]{12,}={0,2})"),
    after(
        "environmentvariable(",
        rf"[a-z]{{3,40}}\(\s*[\"']\w*(?:{SECRET_NAME})[\"']\s*,\s*[\"'](?P<v>[^\"'\n]{{4,300}})",
        PASSWORD,
        is_value,
    ),
    Shape(
        PASSWORD,
        ("password ",),
        re.compile(r"password (?P<v>[^\s\"'`<>\\]{4,})(?=[ \t]*(?:$|\n|\\n|<))", re.I),
        lambda value: is_chosen(value) and any(map(str.isdigit, value)),
    ),
    after("aws_secret_access_key aws_session_token", r"aws_[a-z_]+\s+(?P<v>[A-Za-z0-9/+=]{16,})", API_KEY),
    after("$1$ $5$ $6$ $apr1$", r"\$(?:[156]|apr1)\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{20,}", PASSWORD, bool),
    after("$2a$ $2b$ $2y$", r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{50,}", PASSWORD, bool),
    after("$y$", r"\$y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{20,}", PASSWORD, bool),
    after("{sha} {ssha}", r"\{s?sha\}(?P<v>[A-Za-z0-9+/]{26,}={0,2})", PASSWORD, bool),
    after('"d" "k" "d\\" "k\\"', r"\"[dk]\\*\"\s*:\s*\\*\"(?P<v>[\w-]{40,})", PASSWORD, is_random),
    after("-key-data:", r"-key-data:\s*(?P<v>[A-Za-z0-9+/]{20,}={0,2})", PASSWORD, bool),
)

_PHRASE: Final = r"(?P<v>[a-z]{3,8}(?: [a-z]{3,8}){11,23})"

PROSE: Final = (
    Shape(
        TOKEN,
        ("the token ", "the secret ", "api key ", "access key ", "pass phrase "),
        re.compile(
            r"[a-z]{3,6} [a-z]{3,6} [(\"'`]{0,2}(?P<v>[^\s\"'`,;<>()\[\]{}=/\\]{9,80}[\w+])(?![\w(\[./=])", re.I
        ),
        lambda value: _is_mixed(value) and is_random(value) and value != value.lower() and value != value.upper(),
    ),
    Shape(
        PASSWORD,
        (
            "password is ",
            "password was ",
            "password to ",
            "passphrase is ",
            "passwort ist ",
            "passwort lautet ",
            "kennwort ist ",
            "kennwort lautet ",
        ),
        re.compile(r"\w+ \w+:?\s+[\"'`]?(?P<v>[^\s\"'`,;<>]{4,}[^\s\"'`,;<>.])", re.I),
        lambda value: is_chosen(value) and not value.replace("-", "").isalpha(),
    ),
    Shape(
        TOKEN,
        ("key is ", "token is ", "secret is ", "key: ", "key 1: ", "key 2: ", "key 3: ", "codes: ", "code: "),
        re.compile(r"[a-z]{3,6}(?: \d)?(?: is|:):?\s+[\"'`]?(?P<v>[^\s\"'`,;<>()]{11,}[\w+/=])", re.I),
        is_random,
    ),
    after(
        "recovery~codes backup~codes",
        r"[a-z]{3,10} codes?:?\s+(?P<v>(?:[a-z0-9]{4,6}-[a-z0-9]{4,6}[\s,]*)+)",
        PASSWORD,
        bool,
    ),
    after("seed~phrase mnemonic recovery~phrase", rf"[a-z ]{{4,20}}?{OPEN}[:=]?\s*{OPEN}{_PHRASE}", PASSWORD, bool),
    Shape(
        PASSWORD, ("pw ", "pwd "), re.compile(r"(?<![a-z0-9_-])pwd? [\"'`]?(?P<v>[^\s\"'`,;<>()]{6,})", re.I), is_random
    ),
    Shape(
        PASSWORD,
        ("pin: ", "pin is ", "pin=", "otp: "),
        re.compile(r"(?<![a-z0-9])(?:pin|otp)(?:: | is |=)(?P<v>\d{4,8})(?!\d)", re.I),
    ),
    Shape(
        PASSWORD,
        ("admin / ", "root / ", "user / "),
        re.compile(r"\w+ / (?P<v>[^\s\"'`,;<>()]{6,})", re.I),
        lambda value: is_chosen(value) and not value.replace("-", "").isalpha(),
    ),
)

PGPASS: Final = re.compile(
    r"(?<![\w.*/-])(?=[\w.-]*[g-zG-Z*.])[\w.*-]+:(?:\d{2,5}|\*):[\w*-]+:[\w*.-]+:(?P<v>[^\s:\"'<>\x1b]{4,200})(?=$|[\s\"'<|])",
    re.M,
)

PLACED_SHAPES: Final = (*HEADERS, *COMMANDS, *FILES, *PROSE, *NEAR)
