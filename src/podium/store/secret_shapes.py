"""Shapes of well-known credentials, and environment variables that hold a secret.

Two rules keep this table safe. Every pattern is linear: a repetition is possessive, bounded, or
followed by nothing that can fail. And every probe is a fragment that JSON escaping leaves alone,
so that it finds in a serialised document whatever the pattern would find in the decoded strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

# A token starts at an edge: after no letter or digit, or after what an escape left behind
# (`\n`, `\u001b`, `%20`, the end of a colour code), in text that was quoted once more.
_EDGE = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9\[]m))"
)
_QUOTE = r"""\\*["']?"""
_BLANK = r"(?:\s|\\[nrt]|%20)"
_SCHEME = r"(?i:bearer|basic|digest|token|negotiate|apikey|bot)"
_CREDENTIAL = r"[A-Za-z0-9._~+/=:-]"


@dataclass(frozen=True)
class TokenShape:
    """A kind of credential.

    Of a match the group `keep`, if the pattern has one, stays. When it has a group `sure` and
    that one took no part, the match was consumed only to stay linear and is left as it was.
    """

    name: str
    probe: re.Pattern[str]
    """Begins with a literal, hence quick; where it finds nothing, the pattern finds nothing."""
    pattern: re.Pattern[str]

    def hide(self, text: str) -> str:
        return self.pattern.sub(self._replacement, text) if self.probe.search(text) else text

    def _replacement(self, match: re.Match[str]) -> str:
        groups = match.groupdict(default="")
        if "sure" in groups and not groups["sure"]:
            return match[0]
        return f"{groups.get('keep', '')}[redacted:{self.name}]"


def _shape(name: str, probe: str, pattern: str) -> TokenShape:
    return TokenShape(name, re.compile(probe), re.compile(pattern))


_AUTHORIZATION = r"z(?<=uthoriz)|Z(?<=UTHORIZ)"
_HEADER = rf"(?i:authorization){_QUOTE}\s{{0,4}}[:=]\s{{0,4}}{_QUOTE}"

_PREFIXED: tuple[TokenShape, ...] = (
    _shape(
        "private-key",
        r"-(?<=-----)BEGIN ",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[A-Za-z0-9+/=\s\\:,]++|-(?!----))*+"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    _shape(
        "jwt",
        r"J(?<=eyJ)",
        r"eyJ[A-Za-z0-9_-]*+(?P<sure>\.eyJ[A-Za-z0-9_-]*+\.[A-Za-z0-9_-]*+)?",
    ),
    _shape("github-token", r"_(?<=gh[opsur]_)", r"gh[opsur]_[A-Za-z0-9]{20,255}+"),
    _shape("github-token", r"_(?<=github_pat_)", r"github_pat_[A-Za-z0-9_]{20,255}+"),
    _shape("gitlab-token", r"-(?<=glp[at]t-)", r"glp[at]t-[A-Za-z0-9_.-]{20,255}+"),
    _shape(
        "sk-token",
        r"-(?<=sk-)[A-Za-z0-9]",
        _EDGE + r"sk-(?:(?:proj|svcacct|admin|ant|or|None)-[A-Za-z0-9_-]{12,}+|[A-Za-z0-9]{20,}+)",
    ),
    _shape("podium-token", r"_(?<=pdt_)", r"pdt_[A-Za-z0-9_-]{20,}+"),
    _shape("google-key", r"AIza", r"AIza[A-Za-z0-9_-]{35,}+"),
    _shape("aws-key-id", r"A[KS]IA[0-9A-Z]{16}", _EDGE + r"A[KS]IA[0-9A-Z]{16}"),
    _shape("slack-token", r"-(?<=xox[a-z]-)", r"xox[a-z]-[A-Za-z0-9-]{10,}+"),
    _shape("slack-token", r"-(?<=xapp-)", r"xapp-[A-Za-z0-9-]{20,}+"),
    _shape(
        "stripe-key", r"_(?<=[rs]k_)(?:live|test)_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,255}+"
    ),
    _shape("npm-token", r"_(?<=npm_)[A-Za-z0-9]{36}", r"npm_[A-Za-z0-9]{36,}+"),
    _shape(
        "pypi-token",
        r"-(?<=pypi-)",
        r"pypi-(?:Ag[A-Za-z0-9_-]{12,}+|[A-Za-z0-9_-]{40,}+)",
    ),
    _shape("huggingface-token", r"_(?<=hf_)[A-Za-z0-9]{30}", _EDGE + r"hf_[A-Za-z0-9]{30,}+"),
    _shape(
        "telegram-token",
        r"A(?<=:A)[A-Za-z0-9_-]{34}",
        rf"(?:{_EDGE}|(?<=bot))[0-9]{{6,12}}:A[A-Za-z0-9_-]{{34}}(?![A-Za-z0-9_-])",
    ),
    _shape(
        "authorization",
        _AUTHORIZATION,
        rf"(?P<keep>{_HEADER}{_SCHEME}{_BLANK}{{1,4}}){_CREDENTIAL}{{4,}}+",
    ),
    _shape(
        "authorization",
        _AUTHORIZATION,
        rf"(?P<keep>{_HEADER})(?=[A-Za-z._~+/=:-]{{0,60}}[0-9]){_CREDENTIAL}{{20,}}+",
    ),
    _shape(
        "bearer-token",
        r"Bearer|bearer|BEARER",
        rf"(?P<keep>(?i:bearer){_BLANK}{{1,4}})(?=[A-Za-z._~+/=:-]{{0,60}}[0-9]){_CREDENTIAL}{{16,}}+",
    ),
)
_URL_PASSWORD = _shape(
    "url-password",
    r"/[^\s/:@\"]*:[^\s/\"]*@",
    r"(?P<keep>:(?:\\*/){2}[^\s/?#:@\"'<>\\]{0,256}:)(?!\[redacted:)[^\s/?#\"'<>`\\]{1,1024}(?=@)",
)
TOKEN_SHAPES = (*_PREFIXED, _URL_PASSWORD)

# One alternation whose branches begin with rare characters: `re` skips quickly to those. Slashes
# are not rare, so URLs have a probe of their own, behind the rarest character they need.
_PREFIX_PROBE = re.compile("|".join(dict.fromkeys(shape.probe.pattern for shape in _PREFIXED)))


def may_hold_token(text: str) -> bool:
    """Tell whether any shape could match, for plain text and for serialised JSON alike. Cheap."""
    if _PREFIX_PROBE.search(text):
        return True
    return "@" in text and _URL_PASSWORD.probe.search(text) is not None


def hide_tokens(text: str) -> str:
    """The text with every credential of a known shape replaced by its marker."""
    if not may_hold_token(text):
        return text
    for shape in TOKEN_SHAPES:
        text = shape.hide(text)
    return text


SHORTEST_SECRET = 6
"""Shorter values would be found all over ordinary text."""

_SECRET_NAME = re.compile(
    r"""
      KEY(?!BOARD|MAP|CODE|WORD|STONE)  |  TOKEN  |  SECRET  |  PASSWORD  |  PASSWD  |  PASSPHRASE
    | CREDENTIAL  |  PRIVATE  |  COOKIE  |  BEARER  |  WEBHOOK  |  CONNECTION_?STRING
    | AUTH(?!OR(?!I[SZ]))               # AUTHORIZATION is one, AUTHOR and AUTHORITY are not
    | SSHPASS
    | (?:^|_)(?:PASS|PAT|PIN|DSN|JWT|OTP|SALT)(?:_|$)
    | _PWD$                             # MYSQL_PWD is one, PWD and OLDPWD are folders
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HARMLESS_NAME = re.compile(
    r"""
      SSH_AUTH_SOCK  |  SSH_AGENT_PID  |  XAUTHORITY  |  XDG_SESSION_.*
    | GPG_(?:TTY|AGENT_INFO|KEY|KEY_?ID)          # the last two name public keys
    | (?:.*_)?(?:MAX_.*TOKENS|.*TOKENS_PER_.*)    # counts of tokens
    | .*_(?:TYPE|PROVIDER|METHOD|MODE|ALGORITHM|ALG|ENABLED|TTL|TIMEOUT|LIMIT|EXPIRY|EXPIRES)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HARMLESS_VALUE = re.compile(
    r"enabled?|disabled?|required|optional|default|always|never|localhost|public|private"
    r"|production|development|staging|testing",
    re.IGNORECASE,
)
_ORDINARY_VALUES = re.compile(
    r"""
    admin | administrator | airflow | api | app | cassandra | change | changeit | changeme | database |
    default | demo | dev | develop | developer | docker | dummy | elastic | elasticsearch | example |
    fake | foobar | grafana | guest | here | influxdb | insecure | insert | it | jenkins | key |
    keycloak | kibana | letmein | local | localdev | login | manager | mariadb | master | me | minio |
    minioadmin | mongo | mongodb | my | mysql | neo | none | oracle | pass | passwd | password |
    placeholder | postgres | postgresql | qwerty | rabbitmq | redis | replace | root | sample | secret |
    secrets | service | sonar | super | supersecret | system | test | tester | testing | testtest | this
    | todo | token | tomcat | unset | unused | user | vagrant | welcome | wordpress | your
    """,
    re.VERBOSE,
)
"""Passwords of images, manuals and examples, and parts of placeholders. Never with digits in it."""
_PRONOUNCEABLE = re.compile(r"(?=.*[aeiouy])(?!.*[^aeiouy]{4})(?:[A-Z][a-z]{5,6}|[a-z]{6,7})")
"""Letters that can be spoken, fewer than eight: hiding them would hide words all over ordinary text."""
_PATH_NAME = re.compile(
    r".*(?:PATH|FILE|DIR|DIRECTORY|FOLDER|HOME|SOCK|SOCKET|STORE)", re.IGNORECASE
)
_PATH_VALUE = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][^\n]*")
# A secret in base64 may begin with a slash too, but hardly with one of these.
_ROOTED_PATH = re.compile(
    r"/(?:home|root|etc|usr|var|run|tmp|opt|mnt|srv|dev|proc|Users|private|Library)/[^\n]*"
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_URL_WITH_USER = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/]*@")
# libpq takes such passwords as they are, but for the slash: with that the URL is refused.
_URL_WITH_UNESCAPED_PASSWORD = re.compile(
    r"postgres(?:ql)?://[^\s/:@]*:([^\s/@]*[?#][^\s/@]*|[^\s@]*/\S*)@"
)
_PARAMETERS = frozenset({"password", "sslpassword", "passwd", "pwd"})


def secrets_in(environ: Mapping[str, str]) -> dict[str, str]:
    """The secrets among these variables, by the name they are to be shown under.

    A password inside a URL goes by `NAME:password`, whatever the variable is called, or by the name of
    its parameter, as in `NAME:sslpassword-parameter`; and with `quoted-` before it as it is written
    there, where that differs. Defaults that everybody knows, and short words, are not among them.
    """
    secrets = {name: value for name, value in environ.items() if looks_secret(name, value)}
    for name, value in environ.items():
        for kind, quoted in _url_passwords(value):
            secrets[f"{name}:{kind}"] = unquote(quoted)
            if unquote(quoted) != quoted:
                secrets[f"{name}:quoted-{kind}"] = quoted
    return {
        name: value
        for name, value in secrets.items()
        if len(value.strip()) >= SHORTEST_SECRET and not _is_ordinary(name, value.strip())
    }


def _is_ordinary(name: str, value: str) -> bool:
    """Tell whether the value is a default such as `changeme`, the name of its own service, or a short word.

    Ordinary text is full of these, and hiding or refusing them protects nothing.
    """
    own = re.split(r"[\W_]+", name.lower())
    parts = re.split(r"[-_. ]+", value.lower())
    return (
        all(part in own or _ORDINARY_VALUES.fullmatch(part) for part in parts)
        or len(set(value)) == 1
        or value in "01234567890"
        or _PRONOUNCEABLE.fullmatch(value) is not None
    )


def looks_secret(name: str, value: str) -> bool:
    """Tell whether a variable of this name holds a secret itself, not a path to one or a word about one."""
    if not _SECRET_NAME.search(name) or _HARMLESS_NAME.fullmatch(name):
        return False
    if _HARMLESS_VALUE.fullmatch(value.strip()):
        return False
    names_a_path = _PATH_NAME.fullmatch(name) and _PATH_VALUE.fullmatch(value)
    return not (names_a_path or _ROOTED_PATH.fullmatch(value))


def _url_passwords(value: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each password in `scheme://user:password@host/?password=…`, as it stands there.

    A password that is the user or the scheme (`postgres://postgres:postgres@…`) is a default
    that everybody knows, and hiding it would hide the name everywhere.
    """
    if not _URL.match(value):
        return
    try:
        parts = urlsplit(value)
        user, password = parts.username, parts.password
    except ValueError:  # a broken IPv6 host, for one: no URL after all
        return
    parameters = [pair.partition("=") for pair in parts.query.split("&")]
    public_values = {user, parts.scheme, *(text for name, _, text in parameters if name == "user")}
    secrets = [("password", password)] if _URL_WITH_USER.match(value) else []
    if unescaped := _URL_WITH_UNESCAPED_PASSWORD.match(value):
        secrets.append(("password", unescaped[1]))
    secrets += [(f"{name}-parameter", text) for name, _, text in parameters if name in _PARAMETERS]
    yield from ((kind, text) for kind, text in secrets if text and text not in public_values)
