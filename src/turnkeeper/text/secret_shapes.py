"""Secret shapes: finds tokens of vendors, private keys, and values that stand where secrets stand."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from turnkeeper.text.secret_names import SECRET_NAME, is_placeholder

API_KEY, TOKEN, PASSWORD, PRIVATE_KEY, URL_LOGIN = "api-key", "token", "password", "private-key", "url-login"


class Found(NamedTuple):
    """A secret in a text: where it begins and ends, and its kind."""

    start: int
    end: int
    kind: str


class Shape(NamedTuple):
    """What secrets of one kind look like. The group ``v`` is the secret, or else the whole match."""

    kind: str
    hints: tuple[str, ...]
    """A match begins with one of these, in lower case: finding them is much faster than a pattern."""
    pattern: re.Pattern[str]
    is_secret: Callable[[str], bool] = bool


def entropy(text: str) -> float:
    """Bits for each character of a text, by how often its characters occur."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())


def is_random(value: str) -> bool:
    """Whether a value looks drawn by lot: digits among letters, and no repetition."""
    return (
        len(value) >= 8
        and any(one.isdigit() for one in value)
        and any(one.isalpha() for one in value)
        and entropy(value) >= 2.5
        and not is_placeholder(value)
    )


def _is_password(value: str) -> bool:
    """Whether a quoted value below a secret name is one. Names of settings and sentences are none."""
    if is_placeholder(value) or any(one.isspace() for one in value):
        return False
    return (
        re.fullmatch(r"[A-Za-z]+|[a-z][a-z_.:/-]*|[A-Z][A-Z_-]*|[\w.]*\.[a-z_]+|.*(?:\{.*\}|<.*>|\(.*\)).*", value)
        is None
    )


def _is_value(value: str) -> bool:
    """Whether a value is one, and does not stand for one."""
    return not is_placeholder(value)


def _is_key(value: str) -> bool:
    """Whether most of what stands between two marks is base64, and not the source of a program that reads keys."""
    inside = re.sub(r"-----[^-\n]{1,60}-----", "", value)
    runs = sum(map(len, re.findall(r"[A-Za-z0-9+/=]{16,}", inside)))
    return runs >= 32 and runs * 2 > len(re.sub(r"\s|\\n", "", inside))


def _is_login(value: str) -> bool:
    return value not in ("git", "hg", "svn", "anonymous") and not re.search(r"[{}$<>*\\|()]|%[sd]", value)


def _is_cookie(value: str) -> bool:
    return "=" in value and any(is_random(one.partition("=")[2].strip()) for one in value.split(";"))


_BEGIN: Final = r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
_END: Final = r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
_BETWEEN: Final = r"(?:\\[rn]|[\s\"'+,|>#*\-]|\d{1,6}[:|])*+"
_KEY_LINES: Final = rf"(?>(?:{_BETWEEN}[A-Za-z0-9+/=]{{20,}}+)+)"
"""Lines of base64, also with what a diff, a listing or a source text puts around them. Atomic: it never goes back."""
_END_MARK: Final = re.compile(_END)
_KEY_LINE: Final = re.compile(r"(?:[\s\"'+,|>#*\-]|\d{1,6}[:|])*+[A-Za-z0-9+/=]{8,}+[\s\"',\\nr+]*")
KEY_CHARS_MAX: Final = 20_000
"""A private key is looked for in so many characters before the mark of its end."""
_OPEN: Final = r"\\*[\"'`]?"
"""A quote that may stand there, also escaped, as in JSON within JSON."""


def _vendor(hint: str, pattern: str, kind: str = API_KEY) -> Shape:
    return Shape(kind, (hint.lower(),), re.compile(rf"(?<![A-Za-z0-9]){re.escape(hint)}{pattern}"))


def _vendors(hints: str, pattern: str, kind: str = API_KEY) -> Shape:
    return Shape(kind, tuple(hints.lower().split()), re.compile(rf"(?<![A-Za-z0-9]){pattern}"))


def _after(hints: str, pattern: str, kind: str, is_secret: Callable[[str], bool] = is_random) -> Shape:
    return Shape(kind, tuple(hints.split(" ")), re.compile(pattern, re.I), is_secret)


SHAPES: Final = (
    Shape(PRIVATE_KEY, ("-----begin ",), re.compile(rf"{_BEGIN}.{{0,20000}}?{_END}", re.S), _is_key),
    Shape(PRIVATE_KEY, ("-----begin ",), re.compile(rf"{_BEGIN}{_KEY_LINES}")),
    Shape(PRIVATE_KEY, ("private-lines: ",), re.compile(rf"Private-Lines: \d+{_KEY_LINES}")),
    _vendor("AGE-SECRET-KEY-1", r"[0-9A-Z]{50,}", PRIVATE_KEY),
    _vendor("sk-", r"(?:ant-|proj-|svcacct-|admin-|or-v1-|or-|lf-|kimi-)?[A-Za-z0-9_-]{18,}"),
    _vendor("AIza", r"[0-9A-Za-z_-]{30,}"),
    _vendor("gsk_", r"[A-Za-z0-9]{20,}"),
    _vendor("xai-", r"[A-Za-z0-9]{20,}"),
    _vendor("hf_", r"[A-Za-z0-9]{20,}"),
    _vendor("pplx-", r"[A-Za-z0-9]{20,}"),
    _vendor("nvapi-", r"[A-Za-z0-9_-]{20,}"),
    _vendor("csk-", r"[A-Za-z0-9]{20,}"),
    _vendor("r8_", r"[A-Za-z0-9]{20,}"),
    _vendor("tvly-", r"[A-Za-z0-9-]{16,}"),
    _vendor("fw_", r"[A-Za-z0-9]{20,}"),
    _vendor("github_pat_", r"[A-Za-z0-9_]{22,}"),
    _vendors("ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    _vendors("glpat- glptt- gldt- glrt- glcbt- glsoat- glft- glimt- glagent-", r"gl[a-z]{2,5}-[A-Za-z0-9_.-]{16,}"),
    _vendors("xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", r"x[a-z]{3}-[A-Za-z0-9-]{10,}", TOKEN),
    _after("hooks.slack.com/", r"hooks\.slack\.com/\w+/(?P<v>[A-Za-z0-9/]{20,})", TOKEN, bool),
    _after("/api/webhooks/", r"/api/webhooks/(?P<v>\d+/[\w-]{30,})", TOKEN, bool),
    _vendors("akia asia abia acca", r"A(?:KIA|SIA|BIA|CCA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    _vendors("sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_", r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _vendor("whsec_", r"[A-Za-z0-9+/=]{20,}"),
    _vendor("SG.", r"[\w-]{16,}\.[\w-]{16,}"),
    _vendor("npm_", r"[A-Za-z0-9]{30,}"),
    _vendor("pypi-", r"[A-Za-z0-9_-]{50,}"),
    _vendors("dop_v1_ doo_v1_ dor_v1_", r"do[por]_v1_[a-f0-9]{40,}"),
    _vendors("shpat_ shpca_ shppa_ shpss_", r"shp[a-z]{2}_[a-fA-F0-9]{32}"),
    _vendor("dapi", r"[a-f0-9]{32}(?:-\d)?"),
    _vendors("hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_-]{20,}", TOKEN),
    _vendor("ATATT3x", r"[A-Za-z0-9_=-]{50,}"),
    _vendor("ya29.", r"[A-Za-z0-9_-]{20,}", TOKEN),
    _vendor("GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    _vendor("dckr_pat_", r"[A-Za-z0-9_-]{20,}"),
    _vendor("lin_api_", r"[A-Za-z0-9]{20,}"),
    _vendor("figd_", r"[A-Za-z0-9_-]{20,}"),
    _vendor("ntn_", r"[A-Za-z0-9]{30,}"),
    _vendor("sbp_", r"[a-f0-9]{40}"),
    _vendors("dp.pt. dp.st. dp.ct. dp.scim. dp.audit.", r"dp\.[a-z]+\.[A-Za-z0-9.]{30,}", TOKEN),
    _vendor("pscale_", r"(?:tkn|oauth|pw)_[\w.-]{20,}"),
    _vendor("sntrys_", r"[A-Za-z0-9+/=_]{30,}", TOKEN),
    _vendor("NRAK-", r"[A-Z0-9]{27}"),
    _vendor("key-", r"[a-f0-9]{32}(?![a-f0-9])"),
    _vendor("tskey-", r"[a-z]+-[A-Za-z0-9-]{16,}"),
    _vendors("sq0 eaaa", r"(?:sq0[a-z]{3}-[\w-]{22,}|EAAA[\w-]{56,})"),
    _after(":aa", r"(?<=\d{8}):(?P<v>AA[A-Za-z0-9_-]{32,})", TOKEN, bool),
    _vendor("eyJ", r"[A-Za-z0-9_-]{8,}\.(?:eyJ)?[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*", TOKEN),
    _after("bearer", r"bearer\s+(?P<v>[A-Za-z0-9._~+/=-]{12,})", TOKEN),
    _after("basic", r"basic\s+(?P<v>[A-Za-z0-9+/]{12,}={0,2})", PASSWORD),
    _after('"auth', r"\"auth\\*\"\s*:\s*\\*\"(?P<v>[A-Za-z0-9+/]{12,}={0,2})", PASSWORD),
    _after(
        "authorization",
        rf"authorization{_OPEN}\s*[:=]\s*{_OPEN}(?:[a-z]+ )?(?P<v>[^\s\"'`\\,;]{{8,}})",
        TOKEN,
    ),
    _after("cookie", rf"cookie{_OPEN}\s*[:=]\s*{_OPEN}(?P<v>[^\r\n\"'`\\]{{8,}})", TOKEN, _is_cookie),
    _after("://", r"://(?P<v>[^\s/?#@\"'`<>]{1,300})@", URL_LOGIN, _is_login),
    _after(
        "?key= &key= ?sig= &sig= signature= ?code= &code= security-token=",
        r"[?&a-z-]+=(?P<v>[^&\s\"'`<>#\\]{6,})",
        TOKEN,
    ),
    _after(
        "-password -passwd -passphrase -token -secret -api-key -apikey -access-key -auth-token",
        r"(?<=[\s-])-[a-z-]{5,10}(?:=|\s+)[\"']?(?P<v>[^\s\"'`\\]{6,})",
        PASSWORD,
        _is_password,
    ),
    _after(
        "curl wget",
        r"[a-z]{4}\b[^\n]{0,2000}?\s(?:-u|--user)[= ]?[\"']?(?P<v>[^\s:\"']+:[^\s\"'$]{3,})",
        PASSWORD,
        bool,
    ),
    _after("sshpass", r"sshpass\s+-p\s*[\"']?(?P<v>[^\s\"']{4,})", PASSWORD, bool),
    _after("mysql mariadb", r"[a-z]+\b[^\n]{0,500}?\s-p[\"']?(?P<v>[^\s\"'$]{4,})", PASSWORD, _is_password),
    _after("login", r"login\b[^\n]{0,300}?\s-p[= ]?[\"']?(?P<v>[^\s\"'$]{4,})", PASSWORD, _is_password),
    _after("login", r"login\s+\S{1,200}\s+password\s+(?P<v>\S{4,})", PASSWORD, _is_password),
    _after("redis-cli", r"redis-cli\b[^\n]{0,300}?\s-a\s+[\"']?(?P<v>[^\s\"'$]{4,})", PASSWORD, _is_value),
    _after('"pass', r"\"pass\\*\"\s*:\s*\\*\"(?P<v>[^\"\\\s]{4,})", PASSWORD, _is_password),
    _after("<password> <passwd>", r"<([a-z]+)>(?P<v>[^<>\s]{4,300})</\1>", PASSWORD, _is_value),
    _after("<secret> <token> <apikey>", r"<([a-z]+)>(?P<v>[^<>\s]{8,300})</\1>", PASSWORD),
    _after("aws_secret_access_key aws_session_token", r"aws_[a-z_]+\s+(?P<v>[A-Za-z0-9/+=]{16,})", API_KEY),
    Shape(PASSWORD, ("password is ",), re.compile(r"password is:?\s+[\"'`]?(?P<v>[^\s\"'`]{6,})", re.I), is_random),
    _after("$1$ $5$ $6$", r"\$[156]\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{20,}", PASSWORD, bool),
    _after("$2a$ $2b$ $2y$", r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{50,}", PASSWORD, bool),
    _after("$y$", r"\$y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{20,}", PASSWORD, bool),
)

_NAMED: Final = re.compile(rf"(?:{SECRET_NAME}){_OPEN}\]?\s{{0,3}}(?:=>|:=|=|:)\s{{0,3}}")
"""A name and what stands between it and its value; for a text in lower case."""
_QUOTED: Final = re.compile(r"\\*([\"'`])(?P<v>[^\"'`\n\\]{6,300})\\*\1")
_BARE: Final = re.compile(rf"{_OPEN}(?P<v>[^\s\"'`\\,;&()\[\]{{}}<>]{{8,300}})")
_VARIABLE: Final = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASS|PASSWORD|PASSWD|PASSPHRASE|PWD|CREDENTIALS?|DSN)=\"?(?P<v>[^\s\"'$]{4,})"
)
_BEFORE_VARIABLE: Final = re.compile(r"[+\- \t]*(?:\d+[:|\t ]+)?(?:export |ENV |set )?[A-Z0-9_]*")
_CALL: Final = re.compile(r"[A-Za-z_.]+(?:\(|$)|/")
_LINE_CHARS_MAX: Final = 200


def shapes_in(text: str) -> Iterator[Found]:
    """The secrets in a text that their shape or their place gives away. They may overlap."""
    lower = text.lower()
    if len(lower) != len(text):  # A few letters are two in lower case; places would not agree.
        lower = re.sub("[A-Z]", lambda match: match[0].lower(), text)
    for shape in SHAPES:
        for hint in shape.hints:
            place = lower.find(hint)
            while place >= 0:
                end = place + 1
                if (match := shape.pattern.match(text, place)) is not None:
                    start, end = match.span("v" if "v" in match.re.groupindex else 0)
                    if shape.is_secret(text[start:end]):
                        yield Found(start, end, shape.kind)
                    end = max(place + 1, end)
                place = lower.find(hint, end)
    yield from _named(text, lower)
    yield from _variables(text)
    yield from _keys_without_beginning(text)


def _named(text: str, lower: str) -> Iterator[Found]:
    """Values after the name of a secret: ``"client_secret": "..."``, ``api_key = ...``."""
    for name in _NAMED.finditer(lower):
        quoted = _QUOTED.match(text, name.end())
        if quoted is not None and _is_password(quoted["v"]):
            yield Found(*quoted.span("v"), PASSWORD)
        elif (bare := _BARE.match(text, name.end())) is not None and is_random(bare["v"]):
            yield Found(*bare.span("v"), PASSWORD)


def _variables(text: str) -> Iterator[Found]:
    """Variables at the beginning of a line, as in a shell or a file of variables, with values of any kind."""
    for match in _VARIABLE.finditer(text):
        begin = text.rfind("\n", max(0, match.start() - _LINE_CHARS_MAX), match.start()) + 1
        begin = begin or max(0, match.start() - _LINE_CHARS_MAX)
        value = match["v"]
        is_secret = is_random(value) or not (is_placeholder(value) or _CALL.match(value))
        if is_secret and _BEFORE_VARIABLE.fullmatch(text, begin, match.start()):
            yield Found(*match.span("v"), PASSWORD)


def _keys_without_beginning(text: str) -> Iterator[Found]:
    """Private keys of which an output that was cut has only the last lines. Read backwards from the mark of the end."""
    for match in _END_MARK.finditer(text) if "PRIVATE KEY" in text else ():
        start, place = match.start(), match.start()
        for line in reversed(text[max(0, start - KEY_CHARS_MAX) : start].splitlines(keepends=True)):
            if line.strip(" \t\r\n+-|>#*\"',\\") and not _KEY_LINE.fullmatch(line):
                break
            place -= len(line)
            start = place if _KEY_LINE.fullmatch(line) else start
        if start < match.start():
            yield Found(start, match.end(), PRIVATE_KEY)


_LONG: Final = re.compile(r"(?<![\w+/=-])[\w+/=-]{32,200}(?![\w+/=-])")


_OWN_ID: Final = re.compile(r"(?:ses|msg|prt|per|que|evt)_[0-9a-f]{12}")
"""Ids of sessions, messages and the like."""


def doubtful_in(text: str) -> Iterator[tuple[int, str]]:
    """Long words that look drawn by lot, and where they begin. They are as often hashes as secrets."""
    for match in _LONG.finditer(text):
        word = match[0]
        kinds = (any(map(str.islower, word)), any(map(str.isupper, word)), any(map(str.isdigit, word)))
        if all(kinds) and entropy(word) >= 4.2 and not _OWN_ID.search(word):
            yield match.start(), word
