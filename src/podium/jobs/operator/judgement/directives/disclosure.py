"""Directive 1: secrets are disclosed to nobody, and people's data never leaves in bulk."""

from __future__ import annotations

from podium.jobs.operator.judgement.directives.rules import Rule, message_rule
from podium.jobs.operator.models import Directive

_SAFETY = Directive.SAFETY
_SECRETS = (
    r"(?:service[\s_-]?role(?:[\s_-]?key)?|api[\s_-]?(?:keys?|tokens?|secrets?)|passwords?|passphrases?|"
    r"(?:secret|private|encryption|signing|ssh|receipt) keys?|(?:access|auth|bearer|session|refresh) tokens?|"
    r"(?:login |admin |database |user )?credentials|env(?:ironment)? (?:variables?|vars?|file)|\.env|connection string|"
    r"database url|(?:supabase|openrouter|twilio|smtp|podium|aws|stripe)_\w+|\w+_(?:api_key|secret|token|password)|"
    r"(?:twilio|stripe|supabase|openrouter|smtp|aws)(?:'s)? (?:\w+ )?(?:tokens?|keys?|secrets?|sid)|(?:credit |debit )card numbers?|"
    r"card numbers|cvvs?|system prompt)\b(?!-)"
    r"(?! (?:reset|manager|policy|protect|field|hint|change|has been|was|is (?:wrong|expired|not))\w*)"
)
_THROUGH = (
    r"(?: (?!(?:reset|resetting|chang\w+|forgot\w*|updat\w+|lost|secure|protect|expired|wrong)\b)"
    r"[\w'@.:/+-]+,?)"
)
_ASK = (
    r"(?:show|give|tell|send|print|reveal|share|display|list|dump|export|leak|email|e-mail|text|sms|output|echo|read "
    r"out|expose|fetch|find|paste|repeat|disclose|hand over|look up|post|forward|write down|copy|what's|whats|what is|"
    r"what are|what was|where is|where are|where's)"
)
_MANY = (
    r"(?:(?:customers|clients|leads|contacts|homeowners)'? (?:list|database|data|details|records|numbers|addresses|emails|"
    r"info\w*|names)|(?:customer|client|lead|contact|homeowner|mailing|email|phone) (?:list|database|base|records|book)|"
    r"(?:all|every|everyone's|everybody's|our (?:whole|entire|full)|the (?:whole|entire|full|complete))(?: (?:of|the|our|my))"
    r"{0,2} (?:[\w'-]+ )?(?:customers?'?|clients?'?|leads?'?|contacts?'?|homeowners?'?|people's|crm|database)"
    r"(?: (?:data|details|records|numbers|addresses|emails|info\w*|names|list))?|(?:the|our) (?:crm|address book))"
)
_OUTSIDE = (
    r"(?:[\w.+-]+@[\w-]+\.\w+|https?:|www\.|\b\w+\.(?:com|net|org|io|ru|cn)\b|dropbox|google (?:drive|sheets?|docs)|"
    r"one ?drive|pastebin|telegram|whatsapp|facebook|gmail|hotmail|\bmy (?:personal|private|own|home)\b|personal (?:email|"
    r"account|address|drive|laptop|phone)|\busb\b|competitors?|third[\s-]part(?:y|ies)|\boutside\b|\bexternal|another "
    r"company|other compan|\ba friend|my (?:mate|friend|cousin|brother|sister|new (?:job|boss|employer|company))|the "
    r"(?:press|media|newspaper)|reddit|\bonline\b|the internet|\bpublicly\b|marketing (?:company|agency|firm))"
)
_MOVE = (
    r"(?:send|email|e-mail|export|forward|upload|share|copy|dump|post|publish|leak|transfer|sync|hand|give|pass|push|"
    r"move|mail|back up|save)"
)

RULES: tuple[Rule, ...] = (
    message_rule(
        "telling_secrets",
        _SAFETY,
        "secrets and keys are told to nobody",
        "service role password passphrase key token credential env connection database supabase openrouter twilio smtp podium aws stripe api secret card cvv prompt "
        "instructions",
        rf"\b{_ASK}\b{_THROUGH}{{0,8}}? {_SECRETS}",
        rf"\b(?:i |we )?(?:need|want|get me|i'd like|gimme) (?:(?:the|an?|our|your|all|his|her|their|admin|database|system|"
        rf"supabase|root) ){{0,4}}{_SECRETS}",
        r"\b(?:show|print|reveal|repeat|output|tell me|give me|what are|what's|what is) (?:(?:me|all|of|us) ){0,2}your (?:\w+ )?"
        r"(?:instructions|system prompt|prompt|hidden rules|initial message)\b",
        quoted="outgoing counts",
    ),
    message_rule(
        "data_to_outside",
        _SAFETY,
        "people's data does not leave in bulk",
        "customer client lead contact homeowner people crm database book list",
        rf"\b{_MOVE}\b[^;!?\n]{{0,25}}? {_MANY}\b[^;!?\n]{{0,60}}?{_OUTSIDE}",
        rf"\b{_MOVE} (?:me |him |her |them )?{_OUTSIDE}[^;!?\n]{{0,30}}? {_MANY}\b",
        r"\bsell(?:ing)? (?:\w+ ){0,4}(?:customer|client|lead|contact|personal|homeowner)s?'? (?:data|details|lists?|"
        r"database|info\w*|records|numbers|emails)\b",
        r"\bsell (?:our|all|the)(?: (?:our|the))? (?:leads|customers|contacts|mailing list)\b",
        quoted="outgoing counts",
    ),
)
