"""The model's commands see the user's environment without keys and passwords."""

import msgspec
import pytest

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


SECRET = """
ANTHROPIC_API_KEY GITHUB_TOKEN GH_TOKEN NPM_TOKEN CI_JOB_TOKEN AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_ACCESS_KEY_ID
PGPASSWORD MYSQL_PWD DB_PASSWORD DB_PASS SSHPASS REDIS_PASSWD GPG_PASSPHRASE CLIENT_SECRET SECRETS DJANGO_SECRET_KEY
GOOGLE_APPLICATION_CREDENTIALS CREDENTIAL stripe_api_key OPENAI_APIKEY npm_config_authToken SIGNING_KEYS KEY
TURNKEEPER_SERVER_PASSWORD OPENCODE_CONFIG_CONTENT
"""
PLAIN = """
PATH HOME PWD OLDPWD SSH_AUTH_SOCK SSH_ASKPASS GIT_ASKPASS KEYBOARD XKB_DEFAULT_LAYOUT GPG_TTY TOKENIZERS_PARALLELISM
GITHUB_REPOSITORY AWS_REGION MONKEY KEYMAP KEYCHAIN_PATH SECRETARY COMPASS PASSENGER_ROOT BYPASS DATABASE_URL
"""


@pytest.mark.parametrize("name", SECRET.split())
def test_what_is_named_like_a_secret_is_withheld_and_seen_if_it_is_configured(name: str) -> None:
    assert command_environ({name: "x", "PATH": "/bin"}, (), tuple) == {"PATH": "/bin"}
    assert command_environ({name: "x"}, (name,), tuple) == {name: "x"}


@pytest.mark.parametrize("name", PLAIN.split())
def test_what_only_looks_a_little_like_a_secret_is_seen(name: str) -> None:
    assert command_environ({name: "x"}, (), Catalog(Config()).key_variables) == {name: "x"}


@pytest.mark.parametrize(
    ("store", "is_seen"),
    [
        ("sqlite:/data/a:b@c.db", True),
        ("postgresql://ada@db/turns", True),
        ("postgresql://ada:s3cret@db/turns", False),
        ("postgresql://db/turns?user=ada&password=s3cret", False),
    ],
)
def test_the_address_of_the_store_is_seen_unless_it_has_a_password(store: str, is_seen: bool) -> None:
    assert ("TURNKEEPER_STORE" in command_environ({"TURNKEEPER_STORE": store}, (), tuple)) is is_seen


def test_a_providers_region_is_seen() -> None:
    seen = command_environ(ENVIRON, (), Catalog(Config()).key_variables)
    assert seen == {"PATH": "/bin", "AZURE_RESOURCE_NAME": "west"}


def test_a_key_that_the_user_allows_by_name_is_seen() -> None:
    allowed = ("OPENAI_API_KEY", "OPENCODE_SERVER_PASSWORD")
    seen = command_environ(ENVIRON, allowed, Catalog(Config()).key_variables)
    assert set(ENVIRON) - set(seen) == {
        "ANTHROPIC_API_KEY",
        "TURNKEEPER_SERVER_PASSWORD",
        "TURNKEEPER_CONFIG_CONTENT",
        "DATABASE_PASSWORD",
    }


def test_a_variable_that_the_configuration_names_for_a_provider_is_withheld() -> None:
    catalog = Catalog(msgspec.convert({"provider": {"local": {"env": ["LOCALKEY"]}}}, Config))
    assert command_environ({"LOCALKEY": "x", "OTHERKEY": "y"}, (), catalog.key_variables) == {"OTHERKEY": "y"}
