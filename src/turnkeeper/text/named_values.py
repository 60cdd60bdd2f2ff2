"""Named values: secrets that the name before them gives away, in settings, variables and fields."""

import re
from collections.abc import Iterator
from typing import Final

from turnkeeper.text.secret_names import SECRET_NAME, is_placeholder
from turnkeeper.text.shape import OPEN, PASSWORD, Found, is_chosen, is_password, is_random, is_word

_BETWEEN: Final = r"(?:\s{0,3}|[ \t]{0,24})(?:=>|:=|=(?!=)|:(?!:))(?:\s{0,3}|[ \t]{0,24})(?:base64:)?"
_NAMED: Final = re.compile(rf"(?:{SECRET_NAME}){OPEN}\]?(?::\s?&?[a-z]+ ?(?==))?{_BETWEEN}")
"""A secret name with the characters between the name and its value; for a text in lower case."""
_PASSWORD_NAME: Final = (
    r"(?:passw(?:or)?d|passphrase|passwort|kennwort|contraseña|mot de passe|senha"
    r"|(?:(?<![a-z])|(?<=\\[nrt]))(?:ssh|db|pg|smtp)?(?:pass|pwd?|psk))"
)
_PASSWORD: Final = re.compile(
    rf"{_PASSWORD_NAME}(?:_?\d{{1,2}})?(?: is| was| for (?:key )?\S{{1,80}}?)?{OPEN}\]?"
    rf"[ \t]{{0,24}}(?P<sign>=>|:=|=(?!=)|:(?!:))(?P<gap>[ \t]{{0,24}})"
)
_QUOTED: Final = re.compile(r"[bru]?\\*([\"'`])(?P<v>[^\"'`\n\\]{4,300})\\*\1")
_BARE: Final = re.compile(rf"{OPEN}(?P<v>[^\s\"'`\\,;&()\[\]{{}}<>]{{4,300}})")
_ENDS: Final = re.compile(r"\\*[\"'`]?[ \t]*(?:$|[\r\n;&|#<,]|\\[nr])|\\*[\"'`][ \t]*[})\]]")
"""What may follow a password that is a word: the end of a line or of a field. Else it is a name in a program."""
_PHRASE: Final = re.compile(
    r"\\*[\"'`]?(?P<v>[A-Za-z]{3,20}(?: [A-Za-z]{3,20}){1,11})(?=\\*[\"'`]?[ \t]*(?:$|[\r\n<|]|\\[nr]|\\*[\"'`]))"
)
_SENTENCE_WORDS: Final = (
    "the and for not are was were has had have with from that this these those you your yours our his her its "
    "their who what when where which how why can could may might must shall should will would does did done been "
    "being but nor yet see use used uses using set sets get gets let only also then than too very any all each "
    "every some none one two into onto over under after before between about above below out off again once here "
    "there more most other such same own during without within upon per via please enter type wrong invalid "
    "incorrect required optional missing unknown expired change changed reset forgot confirm hidden stored kept "
    "found masked error failed failure string number value field new old first last least file option default "
    "user name word secret key token password passwords passphrase login read write check checked checks matches "
    "match given like just need needs de passe"
)
_SENTENCE: Final = frozenset(_SENTENCE_WORDS.split())
_VARIABLE: Final = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASS|PASSWORD|PASSWD|PASSPHRASE|PWD|PAT|CREDENTIALS?|DSN)=[\"']?(?P<v>[^\s\"'$]{4,})"
)
_BEFORE_VARIABLE: Final = re.compile(
    r"(?:\S{1,120}:\d+:|\s*Line \d+:|\d{4}-\S+)?[+\->|. \t]*(?:\d+[:|→\t ]+)?[+\- \t]*"
    r"(?:(?:export|ENV|ARG|set|setx|declare -x|env) )?[A-Z0-9_]*"
)
_CALL: Final = re.compile(r"[A-Za-z_.]+(?:\(|$)|/")
_LINE_CHARS_MAX: Final = 200


def named_values(text: str, lower: str) -> Iterator[Found]:
    """Values after the name of a secret: ``"client_secret": "..."``, ``api_key = ...``."""
    for name in _NAMED.finditer(lower):
        quoted = _QUOTED.match(text, name.end())
        if quoted is not None and len(quoted["v"]) >= 6 and is_password(quoted["v"]):
            yield Found(*quoted.span("v"), PASSWORD)
        elif (bare := _BARE.match(text, name.end())) is not None and is_random(bare["v"]):
            if text[bare.end() : bare.end() + 1] == "(":
                continue
            yield Found(*bare.span("v"), PASSWORD)


def passwords(text: str, lower: str) -> Iterator[Found]:
    """Values after a name of passwords. People choose them, so they may be words."""
    for name in _PASSWORD.finditer(lower):
        if (phrase := _PHRASE.match(text, name.end())) is not None:
            if _SENTENCE.isdisjoint(phrase["v"].lower().split()):
                yield Found(*phrase.span("v"), PASSWORD)
            continue
        quoted = _QUOTED.match(text, name.end())
        if quoted is not None:
            if is_chosen(quoted["v"]):
                yield Found(*quoted.span("v"), PASSWORD)
            continue
        bare = _BARE.match(text, name.end())
        if bare is None or not is_chosen(bare["v"]) or text[bare.end() : bare.end() + 1] in ("(", "["):
            continue
        if not is_word(bare["v"]) or _is_setting(text, name, bare):
            yield Found(*bare.span("v"), PASSWORD)


def _is_setting(text: str, name: re.Match[str], value: re.Match[str]) -> bool:
    """Whether a word after a name is a value of a setting, and not a name in a program: ``a: b`` and ``a=b``."""
    is_tight = name["sign"] == "=" and not name["gap"]
    is_yaml = name["sign"] == ":" and bool(name["gap"])
    is_plain = (value["v"].islower() and "_" not in value["v"]) or is_random(value["v"])
    is_plain = is_plain or (re.search("[A-Z]{2}", value["v"]) is not None and not value["v"].isupper())
    return (is_tight or is_yaml) and is_plain and _ENDS.match(text, value.end()) is not None


def variables(text: str) -> Iterator[Found]:
    """Variables at the beginning of a line, as in a shell or a file of variables, with values of any kind."""
    for match in _VARIABLE.finditer(text):
        begin = text.rfind("\n", max(0, match.start() - _LINE_CHARS_MAX), match.start()) + 1
        begin = begin or max(0, match.start() - _LINE_CHARS_MAX)
        value = match["v"]
        is_secret = is_random(value) or not (is_placeholder(value) or _CALL.match(value))
        is_secret = is_secret or (match[0].startswith("PASS") and is_chosen(value) and value.islower())
        is_name = is_random(value) and text[max(0, match.start() - 3) : match.start()].isupper()
        if is_name or (is_secret and _BEFORE_VARIABLE.fullmatch(text, begin, match.start())):
            yield Found(*match.span("v"), PASSWORD)
