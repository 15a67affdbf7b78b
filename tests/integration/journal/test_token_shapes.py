"""Known credentials are found wherever they stand, ordinary text is not, and time stays linear."""

import json

import pytest

from podium.store.secret_shapes import hide_tokens, may_hold_token
from tests.linear_cost import assert_linear_cost

# Put together here, so that no scanner of repositories takes this file for a leak.
_RUN = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIE"
    + _RUN
    + "\nab==\n-----END RSA PRIVATE KEY-----"
)
TOKENS = {
    "github-classic": "ghp_" + _RUN + "Q1",
    "github-oauth": "gho_" + _RUN + "Q1",
    "github-server": "ghs_" + _RUN + "Q1",
    "github-fine": "github_pat_11ABCDEFG0" + _RUN + "_" + _RUN,
    "openai": "sk-" + _RUN + _RUN[:14],
    "openai-project": "sk-proj-" + _RUN + "_" + _RUN,
    "anthropic": "sk-ant-api03-" + _RUN + "-AA",
    "openrouter": "sk-or-v1-" + "0123456789abcdef" * 4,
    "podium-door": "pdt_" + _RUN + "_-Q1",
    "google": "AIza" + _RUN + "5",
    "aws": "AKIA" + "ABCDEFGH12345678",
    "aws-temporary": "ASIA" + "ABCDEFGH12345678",
    "slack": "xoxb-123456789012-" + _RUN,
    "slack-app": "xapp-1-A0123456789-" + _RUN,
    "stripe": "sk_live_" + _RUN,
    "stripe-restricted": "rk_live_" + _RUN,
    "npm": "npm_" + _RUN + "Q1",
    "pypi": "pypi-AgEIcHlwaS5vcmc" + _RUN,
    "gitlab": "glpat-" + _RUN[:20],
    "huggingface": "hf_" + _RUN,
    "telegram": "123456789:AA" + _RUN[:33],
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + _RUN,
    "pem": PEM,
}
SURROUNDINGS = [
    "{}",
    "export TOKEN={}; echo done",
    'said "{}", twice',
    "line\n{}\nline",
    "escaped \\n{}\\n once more",
    "colour \x1b[32m{}\x1b[0m",
    "query?x=1%20{}",
    "https://api.example.org/{}/send",
]


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS.keys())
def test_known_token_is_removed_wherever_it_appears(token: str) -> None:
    for surrounding in SURROUNDINGS:
        hidden = hide_tokens(surrounding.format(token))
        assert token not in hidden
        assert "[redacted:" in hidden
        assert hidden.startswith(surrounding[:8].partition("{")[0])


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS.keys())
def test_the_quick_probe_sees_it_in_serialised_text_too(token: str) -> None:
    for surrounding in SURROUNDINGS:
        text = surrounding.format(token)
        assert may_hold_token(json.dumps({"a": text}, ensure_ascii=False))
        assert may_hold_token(json.dumps(json.dumps([text])))


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (
            "Authorization: Bearer abcdef123456",
            "Authorization: Bearer [redacted:authorization]",
        ),
        (
            'curl -H "authorization: basic dXNlcjpwYXNz" https://example.org',
            'curl -H "authorization: basic [redacted:authorization]" https://example.org',
        ),
        (
            '{\\"Authorization\\": \\"Bearer abcdef\\"}',
            '{\\"Authorization\\": \\"Bearer [redacted:authorization]\\"}',
        ),
        (
            "authorization=0123456789abcdef0123456789abcdef",
            "authorization=[redacted:authorization]",
        ),
        ("sent bearer abcdefghij0123456789", "sent bearer [redacted:bearer-token]"),
        (
            "postgresql://ada:s3cr3t@db:5432/x and mailto:ada@example.org",
            "postgresql://ada:[redacted:url-password]@db:5432/x and mailto:ada@example.org",
        ),
        ("https:\\/\\/ada:p@ss@host\\/", "https:\\/\\/ada:[redacted:url-password]@host\\/"),
        ("redis://:s3cr3t@cache", "redis://:[redacted:url-password]@cache"),
        ("bot123456:A" + "b" * 34, "bot[redacted:telegram-token]"),
    ],
)
def test_only_the_secret_part_is_hidden(text: str, hidden: str) -> None:
    assert hide_tokens(text) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "task-0199f3c2a7b87c3e9d1f5a6b7c8d9e0f and risk-management-for-everyone",
        "authorization: required, and authorization = request.headers.get('x')",
        "the bearer of bad news, Bearer authentication is a scheme",
        "https://example.org:8080/path?mail=ada@example.org",
        "ssh://git@example.org/repository and ada@example.org",
        "run_0199f3c2a7b87c3e9d1f5a6b12345678:A-step-with-a-very-long-name-indeed:0",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "npm_config_registry npm_package_name hf_hub ghp_ AKIA eyJ eyJ.eyJ",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "pip install pypi-attestations",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert hide_tokens(text) == text


def test_a_private_key_that_was_cut_off_is_hidden_to_where_it_stops() -> None:
    cut = PEM[:70]
    assert hide_tokens(f"{cut}; and more") == "[redacted:private-key]; and more"


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    "piece",
    [
        "eyJ",
        "eyJ_",
        "eyJa.",
        "sk-",
        "sk-proj-",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----.",
        "://a:",
        "://",
        ":@",
        "/a:b",
        "authorization: ",
        "authorization\\",
        "Bearer ",
        "bearer\t",
        "0:A",
        "1234567890",
        "A",
        "_",
        "-",
        "[redacted:",
    ],
)
def test_a_long_text_made_to_be_slow_is_not(piece: str) -> None:
    assert_linear_cost(lambda size: hide_tokens(piece * (size // len(piece)) + " AIza"), 300_000)
