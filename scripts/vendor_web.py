"""Write the libraries of the web page into server/web/vendor, from packages of npm that are pinned by their hashes.

python scripts/vendor_web.py            download by npm, verify, write the files and vendor.json
python scripts/vendor_web.py --check    compare the files with vendor.json; needs no network
"""

import base64
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

TARGET = Path(__file__).resolve().parents[1] / "src/turnkeeper/server/web/vendor"
RECORD = TARGET / "vendor.json"


class Package(NamedTuple):
    """A package of npm, the hash of its archive, its licence, and which of its files are taken under which name."""

    name: str
    version: str
    integrity: str
    licence: str
    files: dict[str, str]
    replaced: tuple[tuple[str, str], ...] = ()
    """Texts that are replaced, such as the bare name of another package."""


LANGUAGES = [
    "asm",
    "bash",
    "bf",
    "c",
    "css",
    "csv",
    "diff",
    "docker",
    "git",
    "go",
    "html",
    "http",
    "index",
    "ini",
    "java",
    "js",
    "jsdoc",
    "json",
    "leanpub-md",
    "log",
    "lua",
    "make",
    "md",
    "pl",
    "plain",
    "py",
    "regex",
    "rs",
    "sql",
    "todo",
    "toml",
    "ts",
    "uri",
    "xml",
    "yaml",
]

PACKAGES = (
    Package(
        "preact",
        "11.2.0",
        "sha512-/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        "MIT",
        {
            "dist/preact.mjs": "preact.js",
            "hooks/dist/hooks.mjs": "preact-hooks.js",
            "LICENSE": "licences/preact.txt",
        },
        (('from"preact"', 'from"./preact.js"'),),
    ),
    Package(
        "htm",
        "3.1.1",
        "sha512-983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        "Apache-2.0",
        {"dist/htm.mjs": "htm.js", "LICENSE": "licences/htm.txt"},
    ),
    Package(
        "markdown-it",
        "15.0.3",
        "sha512-+Az7Ojz3iRGu8KYMvJ6xVhvrxP3eE+vEtJX75Ow88XBpcQNV/0lGX5ZynIIBftREo4DC2jsveAMDaeltmm8QvQ==",
        "MIT",
        {"dist/browser/markdown-it.esm.min.mjs": "markdown-it.js", "LICENSE": "licences/markdown-it.txt"},
    ),
    Package(
        "dompurify",
        "3.4.17",
        "sha512-B/pSlYVHQ58kqISD/yDjuJ1yfzI34m1gF4lAod2bwSRhiN4K5Cl3H8Af7hqB2PmTL911tdEudnnXn5FnhRoz0w==",
        "Apache-2.0 or MPL-2.0",
        {"dist/purify.es.mjs": "purify.js", "LICENSE": "licences/dompurify.txt"},
    ),
    Package(
        "@speed-highlight/core",
        "2.1.0",
        "sha512-KLoDVy82Hm3N09SLf1L5HoqPo+oIPsPn6C5K3Iz3VTSFygs6vV1Rn3kLyV+D5uyMW3wXtGGFzfJ+kKcFtSSBUQ==",
        "CC0-1.0",
        {
            "dist/index.js": "highlight/index.js",
            **{f"dist/languages/{name}.js": f"highlight/languages/{name}.js" for name in LANGUAGES},
            "LICENSE": "licences/speed-highlight.txt",
        },
    ),
)


def main(arguments: list[str]) -> int:
    """Write the files, or compare them with the record."""
    if "--check" in arguments:
        return check()
    files: dict[str, dict[str, str]] = {}
    for package in PACKAGES:
        archive = fetched(package)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for source, target in package.files.items():
                found = tar.extractfile(f"package/{source}")
                assert found is not None, f"{package.name} has no {source}"
                original = found.read()
                written = replaced(original, package)
                (TARGET / target).parent.mkdir(parents=True, exist_ok=True)
                (TARGET / target).write_bytes(written)
                files[target] = {
                    "package": f"{package.name}@{package.version}",
                    "licence": package.licence,
                    "source": source,
                    "source_sha256": hashlib.sha256(original).hexdigest(),
                    "sha256": hashlib.sha256(written).hexdigest(),
                }
    record = {"packages": {f"{one.name}@{one.version}": one.integrity for one in PACKAGES}, "files": files}
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "utf-8")
    return check()


def fetched(package: Package) -> bytes:
    """The archive of a package as npm downloads it. Raises if it is not the one that is pinned."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, f"{package.name}@{package.version}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)
        archive = next(Path(folder).iterdir()).read_bytes()
    found = f"sha512-{base64.b64encode(hashlib.sha512(archive).digest()).decode()}"
    if found != package.integrity:
        raise SystemExit(f"{package.name}@{package.version} is {found}, not {package.integrity}; nothing was written")
    return archive


def replaced(original: bytes, package: Package) -> bytes:
    """A file as it is written: names of other packages lead to the vendored ones, and no source map is named."""
    text = original.decode("utf-8")
    for old, new in package.replaced:
        text = text.replace(old, new)
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("//# sourceMappingURL")]
    return "".join(lines).encode()


def check() -> int:
    """Whether the files are those of the record, and no others."""
    known = json.loads(RECORD.read_text("utf-8"))["files"]
    there = {path.relative_to(TARGET).as_posix(): path for path in TARGET.rglob("*") if path.is_file()}
    there.pop(RECORD.name, None)
    wrong = sorted(known.keys() ^ there.keys())
    wrong += [
        name
        for name in known.keys() & there.keys()
        if hashlib.sha256(there[name].read_bytes()).hexdigest() != known[name]["sha256"]
    ]
    for name in wrong:
        print(f"vendor/{name} is not what was verified; run scripts/vendor_web.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
