"""Entries of a folder: whether one is a folder, also if it is a link that leads nowhere."""

import os


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder or a link to one. False for a link to itself, for which ``is_dir`` raises."""
    try:
        return entry.is_dir()
    except OSError:
        return False
