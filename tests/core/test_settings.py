"""Settings are checked by key and merged in order."""

import pytest

from turnkeeper.core.permission import parse_rules
from turnkeeper.core.settings import checked, merged, typed, with_strict_sandbox
from turnkeeper.model.config import SandboxConfig
from turnkeeper.model.permission import Rule
from turnkeeper.model.refusal import Invalid


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"model": 7}, "x.json: model: Expected `str | null`, got `int`"),
        (
            {"provider": {"fine": {}, "local": {"models": {"a": {}, "b.c": {"limit": {"context": "big"}}}}}},
            "x.json: provider.local.models.b.c.limit.context: Expected `int | null`, got `str`",
        ),
        ({"agent": {"build": {"steps": "many"}}}, "x.json: agent.build.steps: Expected `int | null`, got `str`"),
        (
            {"permission": {"bash": {"rm *": "never"}}},
            "x.json: permission.bash.rm *: Invalid enum value 'never'; use one of 'allow', 'ask', 'deny'",
        ),
        ({"nobody": [1]}, None),
        ({"disabled_providers": ["a", 2]}, "x.json: disabled_providers.1: Expected `str`, got `int`"),
        ({"provider": []}, "x.json: provider: Expected `object`, got `array`"),
        ([], "x.json: expected an object of settings"),
    ],
)
def test_a_wrong_type_is_named_by_file_and_key(raw: object, message: str | None) -> None:
    if message is None:
        assert checked(raw, "x.json") == raw
        return
    with pytest.raises(Invalid) as caught:
        checked(raw, "x.json")
    assert str(caught.value) == message


def test_keys_nobody_knows_are_kept_and_mean_nothing() -> None:
    raw = {"$schema": "x", "theme": {"a": 1}, "provider": {"local": {"options": {"setCacheKey": True}}}}
    assert checked(raw, "x.json") == raw
    assert typed(raw).provider["local"].own_options == {"setCacheKey": True}
    assert typed(raw).provider["local"].options.base_url is None


def test_later_settings_win_objects_are_merged_and_lists_replaced() -> None:
    first = {
        "model": "a/b",
        "provider": {"x": {"env": ["A"], "models": {"m": {"name": "M"}}}},
        "instructions": ["a", "b"],
    }
    second = {"model": "c/d", "provider": {"x": {"env": ["B"], "models": {"n": {}}}}, "instructions": ["b", "c"]}
    assert merged([first, second]) == {
        "model": "c/d",
        "provider": {"x": {"env": ["B"], "models": {"m": {"name": "M"}, "n": {}}}},
        "instructions": ["a", "b", "c"],
    }


def test_a_permission_in_one_word_is_not_wiped_out_by_a_finer_one() -> None:
    files = [checked({"permission": "ask"}, "a"), checked({"permission": {"bash": "allow"}}, "b")]
    assert parse_rules(typed(merged(files)).permission, "/home/ada") == (
        Rule(permission="*", pattern="*", action="ask"),
        Rule(permission="bash", pattern="*", action="allow"),
    )


def test_a_provider_never_shows_its_key() -> None:
    config = typed({"provider": {"x": {"options": {"apiKey": "s3cret", "baseURL": "http://h"}}}})
    assert config.provider["x"].options.api_key == "s3cret"
    assert "s3cret" not in repr(config)
    assert "http://h" in repr(config)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("read-only", {"mode": "read-only"}),
        ("off", {}),
        ("workspace", {}),
        ({"mode": "off", "network": True, "write": ["/"]}, {}),
        ({"mode": "read-only", "network": False, "write": ["/"]}, {"mode": "read-only", "network": False}),
    ],
)
def test_a_file_that_commands_can_write_may_only_tighten_the_sandbox(given: object, kept: object) -> None:
    assert with_strict_sandbox(checked({"sandbox": given, "model": "a/b"}, "x.json")) == {
        "sandbox": kept,
        "model": "a/b",
    }


def test_a_sandbox_in_one_word_is_not_wiped_out_by_a_finer_one() -> None:
    files = [checked({"sandbox": "read-only"}, "a"), checked({"sandbox": {"network": False}}, "b")]
    assert typed(merged(files)).sandbox == SandboxConfig(mode="read-only", network=False)
