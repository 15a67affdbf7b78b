"""Detection of variables that hold secrets."""

import pytest

from podium.store.secret_shapes import looks_secret, secrets_in


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "GH_TOKEN",
        "npm_config__authToken",
        "DJANGO_SECRET",
        "PGPASSWORD",
        "MYSQL_PWD",
        "SSHPASS",
        "SMTP_PASS",
        "GPG_PASSPHRASE",
        "GPG_PRIVATE_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "SESSION_COOKIE",
        "SENTRY_DSN",
        "HTTP_AUTHORIZATION",
        "GITHUB_PAT",
        "SLACK_WEBHOOK",
    ],
)
def test_variable_with_a_revealing_name_is_secret(name: str) -> None:
    assert looks_secret(name, "Zk3vQ9xT7w")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSH_AUTH_SOCK", "/run/user/1000/keyring/ssh"),
        ("XAUTHORITY", "somewhere/else"),
        ("XDG_SESSION_COOKIE", "0a1b2c3d4e5f"),
        ("GPG_KEY", "A035C8C19219BA821ECEA86B64E628F8D684696D"),
        ("GPG_TTY", "/dev/pts/3"),
        ("SSL_KEY_FILE", "./certificates/server.pem"),
        ("DEPLOY_KEY_PATH", "~/.ssh/deploy"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/ada/service.json"),
        ("GIT_AUTHOR_NAME", "Ada Lovelace"),
        ("KEYBOARD_LAYOUT", "dvorak-programmer"),
        ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "640000"),
        ("AUTH_PROVIDER", "google"),
        ("REQUIRE_AUTH", "disabled"),
        ("PWD", "projects/podium"),
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("EDITOR", "vim --noplugin"),
    ],
)
def test_a_harmless_variable_is_not_secret(name: str, value: str) -> None:
    assert not looks_secret(name, value)


def test_a_key_that_begins_with_a_slash_is_still_secret() -> None:
    assert looks_secret("AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMIK7MDENGbPxRfiCYzz")


def test_short_values_are_left_alone() -> None:
    assert secrets_in({"DOOR_TOKEN": "48213", "GATE_TOKEN": "482139"}) == {"GATE_TOKEN": "482139"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POSTGRES_PASSWORD", "postgres"),
        ("SHOP_PASSWORD", "shop"),
        ("SHOP_WORKER_SECRET", "shop-worker"),
        ("MINIO_SECRET_KEY", "minioadmin"),
        ("DB_PASSWORD", "ChangeMe"),
        ("API_KEY", "your-api-key-here"),
        ("DB_PASSWORD", "123456789"),
        ("DB_PASSWORD", "xxxxxxxx"),
        ("DB_PASSWORD", "banana"),
        ("DATABASE_URL", "mysql://app:secret@db/app"),
    ],
)
def test_a_value_that_ordinary_text_is_full_of_is_no_secret(name: str, value: str) -> None:
    assert secrets_in({name: value}) == {}


@pytest.mark.parametrize(
    "value",
    ["p0stgres", "Postgres!", "banAna", "xkqwzv", "swordfish", "admin-4", "482139", "test_a1"],
)
def test_a_short_password_that_is_no_default_is_a_secret(value: str) -> None:
    assert secrets_in({"POSTGRES_PASSWORD": value}) == {"POSTGRES_PASSWORD": value}


def test_the_password_in_a_url_is_found_whatever_the_variable_is_called() -> None:
    environ = {"UPSTREAM": "postgresql://ada:p%40ssw0rd@db.example.org:5432/main"}
    assert secrets_in(environ) == {
        "UPSTREAM:password": "p@ssw0rd",
        "UPSTREAM:quoted-password": "p%40ssw0rd",
    }


@pytest.mark.parametrize(
    "url",
    [
        "postgres://postgres:postgres@localhost/postgres",
        "https://git@example.org/repository",
        "https://example.org/a@b",
        "https://user:longpassword@[broken/",
    ],
)
def test_a_url_without_a_password_of_its_own_gives_nothing(url: str) -> None:
    assert secrets_in({"PLACE": url}) == {}


def test_passwords_among_the_parameters_of_a_url_are_found() -> None:
    url = "postgresql:///db?user=ada&password=hun%2Fter2x&sslmode=require&sslpassword=deeper9"
    assert secrets_in({"PODIUM_DATABASE_URL": url}) == {
        "PODIUM_DATABASE_URL:password-parameter": "hun/ter2x",
        "PODIUM_DATABASE_URL:quoted-password-parameter": "hun%2Fter2x",
        "PODIUM_DATABASE_URL:sslpassword-parameter": "deeper9",
    }


@pytest.mark.parametrize(
    "password",
    ["hunt/er2secret", "12/er2secret", "hu/nt@er2/se?ret", "hunt?er2", "hunt#er2", "hunt@er2"],
)
def test_a_password_that_was_not_escaped_is_known_all_the_same(password: str) -> None:
    url = f"postgresql://ada:{password}@db.example:5432/podium?sslmode=require"
    assert password in secrets_in({"PODIUM_DATABASE_URL": url}).values()


def test_a_parameter_that_is_the_user_or_the_scheme_is_no_secret() -> None:
    for url in (
        "postgresql://h/db?user=postgres&password=postgres",
        "postgresql://h/db?password=postgresql",
        "https://example.com:8080/path/@scope/package?page=2",
    ):
        assert secrets_in({"PLACE": url}) == {}
