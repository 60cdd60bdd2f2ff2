"""``turnkeeper skill``: which skills there are, what rules say of each, and what one says."""

import json
from pathlib import Path
from typing import Any

import pytest
from workshop import Shop


def put(folder: Path, name: str, more: str = "description: Tides\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "SKILL.md"
    file.write_text(f"---\nname: {name}\n{more}---\nLook at the \x1b[31mmoon.\n")
    return file


def listed(shop: Shop, *words: str, **environ: str) -> dict[str, Any]:
    run = shop.process("skill", "list", "--json", *words, **environ)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_the_list_names_each_skill_with_its_rule_and_place(shop: Shop) -> None:
    shop.configure(permission={"skill": {"reef": "deny"}}, agent={"calm": {"permission": {"skill": "ask"}}})
    tide = put(shop.project / ".turnkeeper/skills/tide", "tide")
    reef = put(shop.home / ".claude/skills/reef", "reef", "")
    found = listed(shop)
    assert found == {
        "agent": "build",
        "items": [
            {"name": "reef", "description": None, "rule": "deny", "location": str(reef)},
            {"name": "tide", "description": "Tides", "rule": "allow", "location": str(tide)},
        ],
        "problems": [],
    }
    assert [one["rule"] for one in listed(shop, "--agent", "calm")["items"]] == ["ask", "ask"]
    run = shop.process("skill", "list")
    assert run.stdout.startswith("SKILL  RULE ")
    assert "the model is not told of it" in run.stdout


def test_a_file_that_is_skipped_is_named(shop: Shop) -> None:
    put(shop.project / ".turnkeeper/skills/bad", "[")
    assert ".turnkeeper/skills/bad/SKILL.md: skipped: " in listed(shop)["problems"][0]
    run = shop.process("skill", "list")
    assert (run.returncode, "There are no skills here." in run.stdout, "bad/SKILL.md" in run.stderr) == (0, True, True)


def test_a_skill_is_shown_with_its_files_and_nothing_harms_the_terminal(shop: Shop) -> None:
    file = put(shop.project / ".turnkeeper/skills/tide", "tide")
    file.with_name("table.csv").write_text("6:12")
    run = shop.process("skill", "show", "tide")
    assert run.returncode == 0
    assert "table.csv" in run.stdout
    assert "moon." in run.stdout
    assert "\x1b" not in run.stdout
    assert json.loads(shop.process("skill", "show", "tide", "--json").stdout) == {
        "name": "tide",
        "description": "Tides",
        "location": str(file),
        "content": "Look at the \x1b[31mmoon.",
        "files": [str(file.with_name("table.csv"))],
    }


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("show", "wind"), 1, "there is no skill 'wind'; the skills are: tide"),
        (("list", "--agent", "nobody"), 2, "there is no agent 'nobody'"),
        (("show",), 2, "NAME"),
    ],
)
def test_a_wrong_name_is_refused(shop: Shop, words: tuple[str, ...], code: int, why: str) -> None:
    put(shop.project / ".turnkeeper/skills/tide", "tide")
    run = shop.process("skill", *words)
    assert (run.returncode, run.stdout) == (code, "")
    assert why in run.stderr


def test_an_untrusted_project_has_its_skills_and_asks_no_address(shop: Shop) -> None:
    shop.configure(skills={"paths": ["mine", "/etc"], "urls": ["http://127.0.0.1:9/skills"]})
    put(shop.project / "mine/tide", "tide")
    found = listed(shop, TURNKEEPER_TRUST="0")
    assert [one["name"] for one in found["items"]] == ["tide"]
    assert found["problems"] == []
    trusted = listed(shop)
    assert "http://127.0.0.1:9/skills: no skills were downloaded" in trusted["problems"][-1]
