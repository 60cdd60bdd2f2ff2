"""The model's commands see the user's environment without the keys that this program uses itself."""

import msgspec

from turnkeeper.core.command_environ import command_environ
from turnkeeper.model.config import Config
from turnkeeper.providers.catalog import Catalog

ENVIRON = {
    "PATH": "/bin",
    "ANTHROPIC_API_KEY": "one",
    "OPENAI_API_KEY": "two",
    "AZURE_RESOURCE_NAME": "west",
    "OPENCODE_SERVER_PASSWORD": "three",
    "TURNKEEPER_SERVER_PASSWORD": "four",
    "DATABASE_PASSWORD": "five",
    "TURNKEEPER_CONFIG_CONTENT": '{"provider": {"x": {"options": {"apiKey": "six"}}}}',
}


def test_keys_of_providers_and_the_servers_password_are_withheld_and_nothing_else() -> None:
    seen = command_environ(ENVIRON, (), Catalog(Config()).key_variables)
    assert seen == {"PATH": "/bin", "AZURE_RESOURCE_NAME": "west", "DATABASE_PASSWORD": "five"}


def test_a_key_that_the_user_allows_by_name_is_seen() -> None:
    allowed = ("OPENAI_API_KEY", "OPENCODE_SERVER_PASSWORD")
    seen = command_environ(ENVIRON, allowed, Catalog(Config()).key_variables)
    assert set(ENVIRON) - set(seen) == {
        "ANTHROPIC_API_KEY",
        "TURNKEEPER_SERVER_PASSWORD",
        "TURNKEEPER_CONFIG_CONTENT",
    }


def test_a_variable_that_the_configuration_names_for_a_provider_is_withheld() -> None:
    catalog = Catalog(msgspec.convert({"provider": {"local": {"env": ["LOCAL_TOKEN"]}}}, Config))
    assert command_environ({"LOCAL_TOKEN": "x", "OTHER_TOKEN": "y"}, (), catalog.key_variables) == {"OTHER_TOKEN": "y"}
