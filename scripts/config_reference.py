"""Write the reference pages of settings and variables, and the JSON Schema, from the model and the table of flags.

``make check`` fails when one of them differs from what this would write.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from turnkeeper.core.flags import FLAGS, WITHOUT_EFFECT
from turnkeeper.model.setting_names import UNUSED
from turnkeeper.workspace.setting_docs import SettingDoc, schema, setting_docs

HEAD = "| Key | Type | Meaning | Default | Merge | Untrusted | Example |\n|---|---|---|---|---|---|---|\n"


def config_page() -> str:
    """The page of all settings."""
    docs = setting_docs()
    models = [doc for doc in docs if doc.key.startswith("provider.*.models.*")]
    providers = [doc for doc in docs if doc.key.startswith("provider.*") and doc not in models]
    agents = [doc for doc in docs if doc.key.startswith("agent.*")]
    general = [doc for doc in docs if doc not in (*models, *providers, *agents)]
    known = {doc.key for doc in docs}
    unused = "".join(f"- `{key}`: {meaning}\n" for key, meaning in UNUSED.items() if key not in known)
    tables = {"general": general, "agents": agents, "providers": providers, "models": models}
    return filled("config_page.txt", {"unused": unused, **{name: table(one) for name, one in tables.items()}})


def filled(name: str, parts: Mapping[str, str]) -> str:
    """A text with what is written from the code in the place of the names in double braces."""
    text = (Path(__file__).parent / name).read_text("utf-8")
    for part, content in parts.items():
        text = text.replace(f"{{{{{part}}}}}", content)
    return text


def table(docs: Iterable[SettingDoc]) -> str:
    """The rows of settings."""
    return HEAD + "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row(doc))} |\n" for doc in docs)


def row(doc: SettingDoc) -> tuple[str, ...]:
    """The cells of one setting."""
    example = f"`{json.dumps(doc.example, ensure_ascii=False)}`"
    meaning = doc.doc.meaning.removesuffix(".")
    return f"`{doc.key}`", doc.type, meaning, doc.doc.default or "not set", doc.merge, doc.project, example


def environment_page() -> str:
    """The page of all variables."""
    rows = "".join(
        f"| {', '.join(f'`{name}`' for name in flag.names)} | {flag.meaning} | {flag.default} |\n" for flag in FLAGS
    )
    others = "".join(f"- `{name}`: {reason}\n" for name, reason in WITHOUT_EFFECT.items())
    return filled("environment_page.txt", {"flags": rows, "without_effect": others})


def schema_file() -> str:
    """The JSON Schema."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "docs/reference/config.md": config_page,
    "docs/reference/config.schema.json": schema_file,
    "docs/reference/environment.md": environment_page,
}


def main(arguments: list[str]) -> int:
    """Write the pages; with ``--check`` write nothing, and say which ones differ."""
    root = Path(__file__).resolve().parent.parent
    differing = []
    for name, page in PAGES.items():
        file, text = root / name, page()
        if not file.is_file() or file.read_text("utf-8") != text:
            differing.append(name)
            if "--check" not in arguments:
                file.write_text(text, "utf-8")
    for name in differing:
        advice = "differs from the code; run scripts/config_reference.py"
        print(f"{name}: {advice if '--check' in arguments else 'written'}")
    return 1 if differing and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
