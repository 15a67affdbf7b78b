"""Which environment variables hold a secret, judged by their names and by what their values look like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

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
_WELL_KNOWN = re.compile(
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
"""What images, manuals and examples have for a password, and what placeholders are made of. Never with digits in it."""
_SHORT_WORD = re.compile(r"(?=.*[aeiouy])(?!.*[^aeiouy]{4})(?:[A-Z][a-z]{5,6}|[a-z]{6,7})")
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
    found = {name: value for name, value in environ.items() if looks_secret(name, value)}
    for name, value in environ.items():
        for kind, quoted in _url_passwords(value):
            found[f"{name}:{kind}"] = unquote(quoted)
            if unquote(quoted) != quoted:
                found[f"{name}:quoted-{kind}"] = quoted
    return {
        name: value
        for name, value in found.items()
        if len(value.strip()) >= SHORTEST_SECRET and not _is_ordinary(name, value.strip())
    }


def _is_ordinary(name: str, value: str) -> bool:
    """Whether the value is a default such as `changeme`, the name of its own service, or a short word.

    Ordinary text is full of these, and hiding or refusing them protects nothing.
    """
    own = re.split(r"[\W_]+", name.lower())
    words = re.split(r"[-_. ]+", value.lower())
    return (
        all(word in own or _WELL_KNOWN.fullmatch(word) for word in words)
        or len(set(value)) == 1
        or value in "01234567890"
        or _SHORT_WORD.fullmatch(value) is not None
    )


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable of this name holds a secret itself, not a path to one or a word about one."""
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
    given = [pair.partition("=") for pair in parts.query.split("&")]
    known = {user, parts.scheme, *(text for name, _, text in given if name == "user")}
    found = [("password", password)] if _URL_WITH_USER.match(value) else []
    if unescaped := _URL_WITH_UNESCAPED_PASSWORD.match(value):
        found.append(("password", unescaped[1]))
    found += [(f"{name}-parameter", text) for name, _, text in given if name in _PARAMETERS]
    yield from ((kind, text) for kind, text in found if text and text not in known)
