"""Every bound in the system, named, in one place."""

BLOB_CHARS_MIN = 32 * 1024
"""Strings from this length on become blobs; below it a second row costs more than it saves."""

VIEWS_CACHED_MAX = 512
"""How many session views the journal keeps in memory."""

NESTING_MAX = 16
"""How deep Child Sessions may nest."""

PAGE_MAX = 1000
"""The most items one page gives."""

STREAM_PAGE = 50
"""How many messages a stream through a history reads at once."""

TEXT_INDEXED_MAX = 256 * 1024
"""How much of one part's text the search index takes."""

TAIL_POLL_S = 0.25
"""How often a tail looks for what other processes wrote."""
