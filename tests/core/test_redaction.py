"""Redaction: what is masked, what is left, one mask for one secret, and a report without secrets."""

import pytest

from turnkeeper.core.redaction import Redactor
from turnkeeper.model.redaction import KnownSecret
from turnkeeper.text.secret_names import env_values, is_secret_name, is_secret_variable

GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
KEY_LINES = ["MIIEowIBAAKCAQEAx" + "Qz7" * 15, "b3BlbnNzaC1rZXktdjE" + "A9k" * 15, "AAAAB3NzaC1yc2EAAA" + "w2x" * 15]
KEY = "\n".join(["-----BEGIN PRIVATE KEY-----", *KEY_LINES, "-----END PRIVATE KEY-----"])


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"use {GITHUB}!", "use [api-key 1]!"),
        ("git clone https://ada:hunter2@example.org/x.git", "git clone https://[url-login 1]@example.org/x.git"),
        ("DB_PASSWORD=correct-horse-7", "DB_PASSWORD=[password 1]"),
        ('{"apiKey": "Zq83hfkw02jf"}', '{"apiKey": "[password 1]"}'),
        ('{\\"token\\": \\"Zq83hfkw02jf\\"}', '{\\"token\\": \\"[password 1]\\"}'),
        ("mysql --password=Zq83hfkw02jf tides", "mysql --password=[password 1] tides"),
        ("curl -u ada:Zq83hfkw x.example", "curl -u [password 1] x.example"),
        (f"before\n{KEY}\nafter", "before\n[private-key 1]\nafter"),
        ("at /Users/grace/tides", "at /Users/[user 1]/tides"),
        ("GET /x?access_token=Zq83hfkw02jf&page=2", "GET /x?access_token=[password 1]&page=2"),
        ('define("DB_PASS", "gull!wvWAS");', 'define("DB_PASS", "[password 1]");'),
        ("requirepass dune_i215k", "requirepass [password 1]"),
        ("ldapsearch -D cn=ada -w gull!Zq83hf x", "ldapsearch -D cn=ada -w [password 1] x"),
        ("htpasswd -b users ada gull!Zq83hf", "htpasswd -b users ada [password 1]"),
        ("gh auth login --with-token <<< gull!Zq83hf", "gh auth login --with-token <<< [password 1]"),
        ("vault login gull-Zq83hfkw", "vault login [token 1]"),
        ("credentials: ada / Zq83hfkw02jf", "credentials: ada / [password 1]"),
        ("secret is `gull!Zq83hfkw02`", "secret is `[token 1]`"),
        ("use the token gull-Zq83hfkw02 for it", "use the token [token 1] for it"),
        ("the api key (gull_Zq83hfkw02) expired", "the api key ([token 1]) expired"),
        ("Das Passwort lautet gull!Zq83hf", "Das Passwort lautet [password 1]"),
        ("mysqldump -u ada -pZq83hfkw tides", "mysqldump -u ada -p[password 1] tides"),
        ("docker login -u ada -p Zq83hfkw x.example", "docker login -u ada -p [password 1] x.example"),
        ("machine x.example login ada password Zq83hfkw", "machine x.example login ada password [password 1]"),
        ('{"log": "machine x login ada password gull_77"}', '{"log": "machine x login ada password [password 1]"}'),
        ("passphrase for key '/srv/id_rsa': gull!Zq83hf", "passphrase for key '/srv/id_rsa': [password 1]"),
        (f"the private key 0x{'60b35141' * 8} of it", "the private key [private-key 1] of it"),
        ('SECRET_KEY = "^@m7rv_yq%x94!w6(y_j=w_j21(#aalf@w2*k0x)"', 'SECRET_KEY = "[password 1]"'),
        (
            '{\\"mnemonic\\": \\"legal winner thank year wave sausage worth useful legal winner thank yellow\\"}',
            '{\\"mnemonic\\": \\"[password 1]\\"}',
        ),
        ("redis-cli -h db -a low-tide ping", "redis-cli -h db -a [password 1] ping"),
        ('{"user": "ada", "pass": "Zq83hfkw"}', '{"user": "ada", "pass": "[password 1]"}'),
        ("<password>low-tide</password>", "<password>[password 1]</password>"),
        ('os.environ["TIDE_SECRET"] = "Zq83hfkw02jf"', 'os.environ["TIDE_SECRET"] = "[password 1]"'),
        (
            "aws configure set aws_secret_access_key wJalrXUtnFEMI/K7MDENG/bPxRf",
            "aws configure set aws_secret_access_key [password 1]",
        ),
        ("my password is Zq83hfkw, keep it", "my password is [password 1], keep it"),
        ("ada:$6$Zq83hfkw$" + "a1B2c3D4e5F6" * 4 + ":19000:0", "ada:[password 1]:19000:0"),
    ],
)
def test_a_secret_is_masked_by_its_shape_or_its_place(text: str, masked: str) -> None:
    assert Redactor().text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "token = next(tokens)",
        "the token is_expired_after_3600s, the secret base64url, api key version2024",
        "vault login, then ldapsearch -x -W; login: see https://docs.example/guide",
        "password = getpass.getpass()",
        'parser.add_argument("--token", help="the token of the user")',
        "api_key: str | None = None",
        "export TOKEN=$GITHUB_TOKEN",
        "PASSWORD=changeme",
        "commit 9f8d85041c3b2a7e6d5f4c3b2a1908f7e6d5c4b3",
        'secret_name = "aws_secret_access_key"',
        "git clone git@example.org:tides.git and ssh://git@example.org/tides",
        "max_tokens: 200000",
        'if text.startswith("-----BEGIN PRIVATE KEY-----"):\n    return load(text)\n' + "x = 1\n" * 30,
        "the secret: be patient and read everything twice",
        "mysql --protocol tcp -port 3306, or mysql -p",
        "login -p PORT and login name password reset",
        "<token>value</token> $1$2 and awk '{print $1$HOME}'",
        "the password is checked by the server",
        'if os.environ["TOKEN"] == "abc1":',
        "password = input()",
        "token: str",
        'PASSWORD_FIELD = "password"',
        "def login(user: str, password: str) -> Session:",
        "self.password = password or config.password",
        "password: the user must choose one",
        "0b3a2f1e-8c1d-4f5a-9e2b-7c6d5e4f3a2b is the id of the run",
        "session ses_e1995df35ffeC5tJtJvxK3UJYX, message msg_1e0ae1a21001G2fFEdyaa9jqSJ",
        '"integrity": "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="',
        "--hash=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "postgresql://USER@HOST/DATABASE",
        'TOKEN = r"(?P<number>[0-9]+)|(?P<name>[a-z_]\\w*)|(?P<sign>[=(+*&^%$#@!])"',
        "the private key is checked against block 0x60b3514160b35141",
    ],
)
def test_code_and_prose_are_left_alone(text: str) -> None:
    assert Redactor().text(text) == text


def test_a_known_value_is_masked_in_every_spelling() -> None:
    value = 'p&ss "word"/7'
    redactor = Redactor([KnownSecret(kind="credential", value=value)])
    for text in (value, '{"a": "p&ss \\"word\\"/7"}', "?a=p%26ss%20%22word%22%2F7", "p&amp;ss &quot;word&quot;/7"):
        assert "word" not in redactor.text(text), text


def test_one_secret_has_one_mask_in_one_export_and_others_have_others() -> None:
    other = GITHUB[:-1] + "9"
    redactor = Redactor()
    assert redactor.text(f"{GITHUB} {other} {GITHUB}") == "[api-key 1] [api-key 2] [api-key 1]"
    assert redactor.json({"seen": [other]}) == {"seen": ["[api-key 2]"]}


def test_what_was_found_once_by_its_place_is_masked_wherever_it_occurs() -> None:
    redactor = Redactor()
    texts = ["it printed Zq83hfkw02jf", "DB_PASSWORD=Zq83hfkw02jf"]
    for text in texts:
        redactor.text(text)
    assert redactor.has_news
    redactor.learn()
    assert [redactor.text(text) for text in texts] == ["it printed [password 1]", "DB_PASSWORD=[password 1]"]
    assert not redactor.has_news


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("it is ghp_a1B2c3D4e5F6g7H8\ni9J0k1L2m3N4o5P6q7R8", "it is [api-key 1]"),
        ("token: glpat-a1B2\nc3D4e5F6g7H8i9J0", "token: [api-key 1]"),
        ("ERROR_TOKEN = 58\nNEXT_TOKEN = 59", "ERROR_TOKEN = 58\nNEXT_TOKEN = 59"),
    ],
)
def test_a_token_that_a_line_break_divides_is_masked_whole(text: str, masked: str) -> None:
    assert Redactor().text(text) == masked


def test_a_secret_among_colours_of_a_terminal_is_masked() -> None:
    text = f"\x1b[32m+\x1b[m\x1b[32mDB_PASSWORD=Zq83hfkw\x1b[m \x1b[1m{GITHUB}\x1b[0m"
    assert Redactor().text(text) == "\x1b[32m+\x1b[m\x1b[32mDB_PASSWORD=[password 1]\x1b[m \x1b[1m[api-key 1]\x1b[0m"


JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"


@pytest.mark.parametrize(
    ("texts", "masked"),
    [
        (["it is " + JWT, "Important: do not deploy"], ["it is [token 1]", "Important: do not deploy"]),
        (["it is ghp_" + "a1B2" * 9, "then"], ["it is [api-key 1]", "then"]),
        (["it is ghp_" + "a1B2" * 6, "a1B2" * 3 + " then"], ["it is [api-key 1]", " then"]),
        (["it is ghp_a1B2", "a1B2" * 8 + " then"], ["it is [api-key 1]", " then"]),
    ],
)
def test_the_first_word_of_a_text_after_a_secret_is_kept_and_the_rest_of_a_secret_is_not(
    texts: list[str], masked: list[str]
) -> None:
    redactor = Redactor()
    assert redactor.texts(texts) == masked
    redactor.learn()
    assert redactor.texts(texts) == masked


def test_a_known_value_that_goes_on_in_the_next_text_is_masked_whole() -> None:
    redactor = Redactor([KnownSecret(kind="env-file", value="a1b2c3d4e5horse")])
    assert redactor.texts(["password=a1b2c3d4e5", "horse then"]) == ["password=[env-file 1]", " then"]


def test_home_and_project_have_names_of_their_own() -> None:
    redactor = Redactor(
        [
            KnownSecret(kind="home", value="/home/ada", mask="~"),
            KnownSecret(kind="directory", value="/home/ada/tides", mask="[project]"),
            KnownSecret(kind="user", value="ada"),
        ]
    )
    assert redactor.text("cd /home/ada/tides/src; ls /home/ada/.ssh; whoami: ada, Canada") == (
        "cd [project]/src; ls ~/.ssh; whoami: [user 1], Canada"
    )


def test_a_file_of_variables_that_a_tool_printed_is_masked_line_by_line() -> None:
    text = "00001| APP=tides\n00002| MODE=quiet\nPORT=8080\n# a note\n"
    masked = Redactor().text(text, is_env=True)
    assert "tides" not in masked
    assert "8080" not in masked
    assert "# a note" in masked


def test_the_end_of_a_private_key_that_was_cut_off_is_masked() -> None:
    text = "...\n" + "\n".join([*KEY_LINES, "-----END PRIVATE KEY-----"]) + "\nafter"
    assert Redactor().text(text) == "...\n[private-key 1]\nafter"
    begun = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(KEY_LINES) + "\n\nnothing more"
    assert Redactor().text(begun) == "[private-key 1]\n\nnothing more"


@pytest.mark.parametrize("number", ["{:>6}\t", "{:>6}→", "{}: ", "{:05}| "])
def test_the_beginning_of_a_private_key_is_masked_in_a_listing_with_numbers(number: str) -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", *KEY_LINES]
    listing = "".join(f"{number.format(nth)}{line}\n" for nth, line in enumerate(lines, 1))
    redactor = Redactor([])
    masked = redactor.text(listing, "output")
    assert [line for line in KEY_LINES if line in masked] == []


def test_a_report_counts_kinds_and_places_and_holds_no_secret() -> None:
    redactor = Redactor([KnownSecret(kind="credential", value="Zq83hfkw02jf-known")])
    redactor.text(f"{GITHUB} {GITHUB}", "message 1 text")
    redactor.text("Zq83hfkw02jf-known", "message 2 bash output")
    redactor.text("integrity Zm9vYmFyQmF6cXV4MTIzNDU2Nzg5MEFCQ0RFRkdISUo", "message 3 text")
    report = redactor.report()
    assert [(one.kind, one.count, one.distinct, one.places) for one in report.masked] == [
        ("api-key", 2, 1, {"message 1 text": 2}),
        ("credential", 1, 1, {"message 2 bash output": 1}),
    ]
    assert (report.count, report.doubtful, report.doubtful_places) == (3, 1, ("message 3 text",))
    assert GITHUB not in repr(report)


def test_a_masked_text_is_not_masked_again() -> None:
    redactor = Redactor()
    masked = redactor.text(f"DB_PASSWORD=Zq83hfkw02jf {GITHUB}\n{KEY}")
    assert Redactor().text(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        "A1b2" * 100_000,
        "secret" * 50_000,
        "\\u0041" * 30_000,
        "%41" * 60_000,
        "-----BEGIN PRIVATE KEY-----" * 2_000,
        "/home/" * 50_000,
        "://" * 50_000,
        ("x" * 70 + "\n") * 5_000 + "PRIVATE KEY",
        "0:" * 100_000,
        "a" * 1_000_000,
        "=" * 1_000_000,
        "QUJDRGVmZ2hpMTIz" * 62_500,
        "password=" * 5_000,
        "curl " * 20_000,
        "token" * 40_000,
        "auth " * 20_000,
        "seed phrase " * 20_000,
        "ghp_aaaaaaaaaaaa\nA1aaaaaaaaaaaaa" * 3_000,
        "password" + " " * 500_000,
    ],
)
def test_a_long_text_is_read_in_the_time_limit_of_a_test(text: str) -> None:
    # With the square of the length it would take hours, and the limit of the suite would end it.
    assert Redactor([KnownSecret(kind="credential", value="Zq83hfkw02jf-known")]).text(text)


def test_names_of_secrets_are_told_from_similar_names() -> None:
    assert [
        name for name in ("apiKey", "client_secret", "x-api-key", "Authorization", "cookie") if not is_secret_name(name)
    ] == []
    assert [
        name for name in ("tokens", "max_tokens", "keyboard", "author", "bypass", "path") if is_secret_name(name)
    ] == []
    assert [name for name in ("OPENAI_API_KEY", "GH_TOKEN", "PGPASSWORD") if not is_secret_variable(name)] == []
    assert [name for name in ("PWD", "PATH", "SSH_AUTH_SOCK", "KEYBOARD") if is_secret_variable(name)] == []


def test_values_of_a_file_of_variables() -> None:
    text = "# c\nexport A_KEY='x1y2'\nNAME=tides\nDEBUG=true\nPORT=8080\nDSN=\"a b c1\"\n"
    text += "URL=http://db.local/x # note\nT=<token>\n"
    assert env_values(text) == {"A_KEY": "x1y2", "DSN": "a b c1", "URL": "http://db.local/x"}
