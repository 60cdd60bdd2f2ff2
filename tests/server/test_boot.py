"""What clients ask when they start."""

import subprocess
from pathlib import Path

import pytest
from served import served
from shapes import faults

from turnkeeper.context.texts import text
from turnkeeper.server.service import ServerOptions

SECRETS = {
    "provider": {
        "acme": {
            "protocol": "openai-chat",
            "options": {
                "baseURL": "https://user:hunter2@localhost:1/v1",
                "apiKey": "hunter2",
                "headers": {"x-key": "hunter2"},
                "token": "hunter2",
            },
            "models": {"large": {"options": {"key": "hunter2"}, "reasoning": True}},
        }
    },
    "mcp": {"files": {"headers": {"x-key": "hunter2"}}},
}


async def test_the_server_tells_its_health_and_its_directories(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert (await server.get("/global/health"))["healthy"] is True
        places = await server.get("/path")
        assert (places["directory"], places["home"], set(places)) == (
            str(tmp_path),
            str(tmp_path),
            {"home", "state", "config", "worktree", "directory"},
        )


async def test_the_project_of_a_repository_and_its_branch(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"]
    subprocess.run(commit, cwd=tmp_path, check=True)
    async with served(tmp_path) as server:
        project = await server.get("/project/current")
        assert (project["worktree"], project["vcs"], project["sandboxes"]) == (str(tmp_path), "git", [])
        assert await server.get("/vcs") == {"branch": "main", "default_branch": "main"}
        assert await server.get("/project") == []
        await server.session()
        assert await server.get("/project") == [await server.get("/project/current")]
        directories = await server.get(f"/project/{project['id']}/directories")
        assert directories == [{"directory": str(tmp_path)}]


async def test_a_directory_outside_of_a_repository_can_pretend_to_be_in_one(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "OPENCODE_FAKE_VCS": "git"}
    async with served(tmp_path, options=ServerOptions(environ=environ)) as server:
        for _ in range(2):
            project = await server.get("/project/current")
            assert (project["id"], project["worktree"], project["vcs"]) == ("global", "/", "git")
            await server.session()
    async with served(tmp_path) as server:
        assert "vcs" not in await server.get("/project/current")


async def test_a_directory_that_is_not_there_is_no_reason_to_fail(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        for path in ("/path", "/project/current", "/vcs", "/config", "/config/providers", "/agent", "/session"):
            await server.get(path, params={"directory": "/does/not/exist"})


async def test_agents_have_the_rules_that_hold_for_them(tmp_path: Path) -> None:
    async with served(tmp_path, config={"permission": {"bash": "ask"}, "agent": {"mine": {"top_p": 0.5}}}) as server:
        agents = {one["name"]: one for one in await server.get("/agent")}
        assert (agents["build"]["mode"], agents["build"]["native"], agents["mine"]["topP"]) == ("primary", True, 0.5)
        assert {"permission": "bash", "pattern": "*", "action": "ask"} in agents["build"]["permission"]
        assert "native" not in agents["mine"]


async def test_agents_are_listed_for_both_generations_with_the_default_one_first(tmp_path: Path) -> None:
    mine = {"model": "acme/large", "variant": "high", "color": "accent", "mode": "subagent"}
    async with served(tmp_path, config={"default_agent": "plan", "agent": {"mine": mine}}) as server:
        first, second = await server.get("/agent"), (await server.get("/api/agent"))["data"]
        names = ["plan", "build", "compaction", "explore", "general", "mine", "summary", "title"]
        assert [one["name"] for one in first] == [one["id"] for one in second] == names
        own, shown = first[5], second[5]
        assert (own["color"], own["variant"], own["model"]) == (
            "accent",
            "high",
            {"providerID": "acme", "modelID": "large"},
        )
        assert (shown["color"], shown["model"]) == (
            "accent",
            {"id": "large", "providerID": "acme", "variant": "high"},
        )
        assert all(faults("AgentV2Info", one) == [] for one in second)
        assert first[3]["prompt"] == second[3]["system"] == text("explore")


async def test_providers_are_those_that_can_be_used(tmp_path: Path) -> None:
    async with served(tmp_path, config={"enabled_providers": ["acme", "openai"]}) as server:
        usable = await server.get("/config/providers")
        assert [one["id"] for one in usable["providers"]] == ["acme"]
        assert usable["default"] == {"acme": "large"}
        every = await server.get("/provider")
        assert ([one["id"] for one in every["all"]], every["connected"]) == (["acme", "openai"], ["acme"])
        model = usable["providers"][0]["models"]["large"]
        assert (model["api"]["npm"], model["limit"]["context"]) == ("@ai-sdk/openai-compatible", 200_000)


async def test_a_changed_setting_is_seen_at_once(tmp_path: Path) -> None:
    async with served(tmp_path, config={"enabled_providers": ["acme"]}) as server:
        await server.get("/config/providers")
        (tmp_path / "turnkeeper.json").write_text('{"provider": {}, "enabled_providers": ["offline"]}')
        usable = await server.get("/config/providers")
        assert [one["id"] for one in usable["providers"]] == ["offline"]


@pytest.mark.parametrize("path", ["/config", "/config/providers", "/provider", "/global/config", "/agent"])
async def test_no_secret_leaves_through_the_settings(path: str, tmp_path: Path) -> None:
    async with served(tmp_path, config=SECRETS) as server:
        answer = await server.http.get(path)
        assert answer.status_code == 200
        assert "hunter2" not in answer.text


@pytest.mark.parametrize("path", ["/skill", "/lsp", "/formatter", "/question", "/experimental/workspace"])
async def test_what_there_is_none_of_is_an_empty_list(path: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert await server.get(path) == []


async def test_clients_get_the_skills_of_a_directory_in_both_generations(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        folder = server.stage.directory / ".turnkeeper/skills/tide"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("---\nname: tide\ndescription: Tides\n---\nLook.\n")
        (folder.parent / "SKILL.md").write_text("---\nname: mute\n---\nHm.\n")
        skills = [
            {"name": "mute", "location": f"{folder.parent}/SKILL.md", "content": "Hm."},
            {"name": "tide", "description": "Tides", "location": f"{folder}/SKILL.md", "content": "Look."},
        ]
        assert await server.get("/skill") == skills
        found = await server.get("/api/skill")
        assert found["data"] == skills
        assert [faults("SkillV2Info", one) for one in found["data"]] == [[], []]
