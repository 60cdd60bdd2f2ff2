"""The files engine: a tree of JSON files in the layout of the seeds, shared by processes and safe from a kill.

``log/NAME.jsonl`` holds the entries of a log, one a line. Documents are JSON files under their keys.
A write has four steps, made by one writer at a time:

1. *Stage*: new documents are written to a staging directory.
2. *Commit*: one record with the whole write is written to the journal and synced. The write is now durable.
3. *Place*: lines are added to the logs, and staged documents are renamed into place. The write is acknowledged.
4. *Finish*: the files are synced and the journal is emptied.

So at most one write is unfinished. The next process that holds the lock or opens the store finishes it from its record.
Readers take no lock: a counter shows whether a write was placed while they read, and then they read again.
"""

from turnkeeper.store.engines.files.engine import FilesEngine, open_files

__all__ = ["FilesEngine", "open_files"]
