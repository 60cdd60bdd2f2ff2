"""skill: gives the text once it is allowed, and names what there is where a name is wrong."""

from pathlib import Path

import pytest
from desk import Desk

from turnkeeper.model.skill import Skill
from turnkeeper.tools.services import ToolServices
from turnkeeper.tools.tool import Denied, Rejected, ToolFailure


@pytest.fixture
def skilled(desk: Desk, tmp_path: Path) -> Desk:
    folder = tmp_path / "skills/tide"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("not read again")
    (folder / "table.csv").write_text("6:12")
    tide = Skill(name="tide", description="Tides", location=str(folder / "SKILL.md"), content="Look at the table.")
    desk.services = ToolServices(skills=(tide, Skill(name="reef", location="/s/reef/SKILL.md", content="Steer.")))
    return desk


async def test_a_skill_is_given_with_its_directory_and_files(skilled: Desk, tmp_path: Path) -> None:
    output = await skilled.run("skill", name="tide")
    folder = tmp_path / "skills/tide"
    assert output.output.startswith('<skill_content name="tide">\nLook at the table.\n')
    assert f"Base directory of this skill: {folder}\n" in output.output
    assert f"<file>{folder}/table.csv</file>" in output.output
    assert output.title == "Skill tide"
    assert output.metadata == {"name": "tide", "dir": str(folder), "truncated": False}
    assert skilled.asked == [("skill", ["tide"], ["tide"])]


async def test_a_skill_whose_directory_is_gone_is_given_all_the_same(skilled: Desk) -> None:
    assert "Steer." in (await skilled.run("skill", name="reef")).output


async def test_an_unknown_skill_is_refused_with_those_that_can_be_used(skilled: Desk) -> None:
    skilled.refuse("skill", "reef")
    with pytest.raises(ToolFailure, match=r"There is no skill 'wind'\. The skills are: tide$"):
        await skilled.run("skill", name="wind")
    assert skilled.asked == []


async def test_a_rule_denies_a_skill_by_its_name_and_another_asks(skilled: Desk) -> None:
    skilled.refuse("skill", "ti*")
    with pytest.raises(Denied):
        await skilled.run("skill", name="tide")
    skilled.refuse("skill", "*", "ask")
    with pytest.raises(Rejected):
        await skilled.run("skill", name="reef")
    skilled.says_yes = True
    assert "Steer." in (await skilled.run("skill", name="reef")).output
