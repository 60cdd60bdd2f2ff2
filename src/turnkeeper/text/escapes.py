"""Escapes for characters that cannot be printed."""


def escaped(text: str) -> str:
    """The text on one line, with escapes for what cannot be printed, such as a line break."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)
