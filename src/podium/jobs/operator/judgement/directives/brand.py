"""Directive 5: what goes out bears the business's name. These rules look at outgoing words alone."""

from __future__ import annotations

from podium.jobs.operator.judgement.directives.rules import Rule, outgoing_rule
from podium.jobs.operator.models import Directive

_BRAND = Directive.BRAND
_INSULT = (
    r"(?:idiots?|morons?|liars?|scammers?|cheapskates?|losers?|pathetic|dumb|stupid|fools?|thie(?:f|ves)|crooks?|"
    r"disgusting|scum|imbeciles?|retard(?:ed|s)?|worthless|pigs?|clowns?|parasites?|criminals?|frauds?|scumbags?|bludgers?)"
)

RULES: tuple[Rule, ...] = (
    outgoing_rule(
        "profanity",
        _BRAND,
        "the outgoing words are profane",
        "fuck fuk f*ck shit sh*t cunt bitch bastard arse ass dick wank piss prick twat bollock slut whore nigg fag",
        r"\b(?:mother)?f(?:u|\*|\W)c?k(?:ing|er|ers|ed|wit|s|in)?\b|\b(?:bull|horse|dip)?sh[i*]t(?:ty|head|s|e)?\b|\bcunts?\b|\bbitch(?:es|y)?\b",
        r"\bbastards?\b|\b(?:arse|ass)(?:holes?|hats?)\b|\bdick(?:head|heads|s)\b|\bwank(?:er|ers)\b|\bpiss (?:off|ed off)\b|\bpricks?\b|\btwats?\b",
        r"\bbollocks\b|\b(?:slut|whore)s?\b|\bnigg(?:er|a)s?\b|\bfag(?:got)?s?\b",
    ),
    outgoing_rule(
        "insult",
        _BRAND,
        "the outgoing words insult somebody",
        "you he she they his her your are shut hate",
        rf"\b(?:you(?:'re| are| r)|he(?:'s| is)|she(?:'s| is)|they(?:'re| are)|(?:the )?(?:customer|client|neighbou?r)(?:'s| is))"
        rf"(?: (?:all|just|both|nothing but))?(?: an?| such an?| a bunch of)?(?: (?!not\b|never\b)\w+){{0,2}} {_INSULT}\b",
        rf"\byou (?:\w+ )?{_INSULT}(?= ?(?:$|[.,!?;]))|\byou (?:stupid|dumb|pathetic|lying|ugly|filthy) \w+|\bshut (?:your mouth|the hell up|up)\b|\b(?:we|i) hate you\b",
        rf"\b(?:competitors?|other roofers?|those (?:guys|roofers))(?: \w+)? (?:are|is)(?: all| just)?(?: an?)?(?: \w+)? {_INSULT}\b",
    ),
    outgoing_rule(
        "threat",
        _BRAND,
        "the outgoing words threaten somebody",
        "we i or watch sorry regret know_where else",
        r"\b(?:we|i)(?:'ll| will|'re going to|'m going to| are going to| am going to| gonna) (?:hurt|kill|find|ruin|destroy|bash|come after|get|"
        r"sort) (?:you|your (?:family|life|kids|house|business))(?= ?(?:$|[.,!?;]| if| unless| and| for| or| when))",
        r"\b(?:we|i)(?:'ll| will) (?:break|smash|burn) (?:your|you|his|her|their) ?(?:legs?|arms?|face|neck|car|windows?|house|down)\b",
        r"\bmake (?:you|your life) (?:pay for|sorry|regret|hell|suffer)\b|\bwatch your back\b|\byou(?:'ll| will) (?:be sorry|regret (?:it|this))\b",
        r"\bor else\b|\bwe know where you live\b|\brip (?:the|your) (?:new )?roof off\b",
    ),
    outgoing_rule(
        "false_claim",
        _BRAND,
        "the outgoing words promise what nobody can keep",
        "never guarante leak cheapest best endorsed government approved collapse lawsuit refund forever proof",
        r"\b(?:never|won't ever|will not ever) (?:ever )?leaks?\b|\b100 ?% (?:leak[\s-]?proof|waterproof forever|guarantee|risk[\s-]free)",
        r"\bguarantee(?:d|s)?(?: \w+){0,4} (?:forever|for ever|for eternity|never to leak|no leaks ever)\b",
        r"\b(?:cheapest|best|only (?:licensed|honest))(?: \w+){0,2} in (?:australia|melbourne|victoria|the (?:world|country|state|universe))\b",
        r"\b(?:endorsed|recommended|approved) by (?:the )?(?:government|prime minister|council|pope|king|vba|cfa|housing commission)\b|\bgovernment[\s-]approved\b",
        r"\b(?:roof|ceiling)(?: will| is going to|'ll)(?: \w+)? collapse\b[^.;\n]{0,40}\b(?:unless|if) you (?:don't )?(?:sign|pay|accept|book)\b",
    ),
    outgoing_rule(
        "harassing",
        _BRAND,
        "the outgoing words harass somebody",
        "sexy nude naked babe hot_body sleep_with",
        r"\b(?:sexy|nudes?|hot body|sleep with (?:me|us)|hey babe|send (?:me )?naked)\b",
    ),
)
