"""The files engine: the JSON tree of the seeds, readable with any editor, shared by processes, and safe from a kill.

``log/NAME.jsonl`` holds the entries of a log, one a line, and is the truth. Documents are JSON files under their keys.
A write has four steps, made by one writer at a time:

1. *Stage*: new documents are written where no reader looks.
2. *Commit*: one record with the whole write is written to the journal and synced. The write is now durable.
3. *Place*: lines are added to the logs, and staged documents are renamed into place. The write is acknowledged.
4. *Finish*: the files are synced and the journal is emptied.

So at most one write is ever unfinished. Whoever next holds the lock or opens the store finishes it from its record.
Readers take no lock: two counters tell them whether a write was placed while they read, and then they read again.
"""

from turnkeeper.store.engines.files.engine import FilesEngine, open_files

__all__ = ["FilesEngine", "open_files"]
