"""What well-known credentials look like, wherever they turn up.

Two rules keep this table safe. Every pattern is linear: a repetition is possessive, bounded, or
followed by nothing that can fail. And every probe is a fragment that JSON escaping leaves alone,
so that it finds in a serialised document whatever the pattern would find in the decoded strings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    """Whether any shape could match, for plain text and for serialised JSON alike. Cheap."""
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
