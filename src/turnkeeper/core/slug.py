"""Slugs: two words that help people to recognise a session. Not unique, never parsed."""

from typing import Final

# Both lists have 64 words, so the low six bits of one random byte choose each word with equal probability.
_ADJECTIVES: Final = """
    able airy amber ample apt bold brave breezy brisk calm candid cheery civil clear cosy crisp
    curious dapper deft eager earnest easy fair fleet fond frank free fresh gentle glad golden grand
    happy hardy hearty honest humble jolly keen kind light lively lucid lucky mellow merry mild
    modest neat nimble noble patient plucky polite proud quick quiet ready serene steady sunny tidy
    warm witty
"""
_NOUNS: Final = """
    acorn anchor aspen badger beacon birch bison brook canyon cedar clover comet coral crane cricket
    dolphin dune ember falcon fern finch fjord garden glacier harbor hazel heron island juniper
    kestrel lagoon lantern lark lemur lily maple marten meadow mesa moss nebula oak orchid otter owl
    pebble pine plover prairie quill rabbit raven reef river robin saddle sparrow spruce summit
    thistle tulip valley willow wren
"""

ADJECTIVES: Final = tuple(_ADJECTIVES.split())
NOUNS: Final = tuple(_NOUNS.split())
ENTROPY_BYTES: Final = 2


def slug(entropy: bytes) -> str:
    """``adjective-noun``, chosen by the first two bytes."""
    return f"{ADJECTIVES[entropy[0] & 63]}-{NOUNS[entropy[1] & 63]}"
