"""Directive 1: nothing against the law, each way of it a rule of its own."""

from __future__ import annotations

from podium.jobs.operator.judgement.directives.rules import Rule, message_rule
from podium.jobs.operator.models import Directive

_SAFETY = Directive.SAFETY
_DOCUMENTS = (
    r"(?:reviews?|testimonials?|invoices?|receipts?|quotes?|certificates?|signatures?|reports?|documents?|payments?|"
    r"records?|warrant(?:y|ies)|inspections?|photos?|evidence|customers?|ids?|licen[cs]es?)"
)
_SOME = (
    r"(?: (?:a|an|the|some|few|couple|of|us|me|him|her|them|\d+|more|another|five[\s-]star|\d[\s-]star|positive|good|nice|"
    r"glowing|one|two|three|five|ten)){0,5}"
)
_MAKE = (
    r"(?:create|write|post|make|send|generate|leave|publish|buy|submit|get|request|add|do|produce|put up|issue|invent|"
    r"prepare|draft|give|organi[sz]e|upload|attach|use)"
)
_PERSON = (
    r"(?:him|her|them|(?:the|this|that|our|a|every) (?:\w+ )?(?:customer|client|homeowner|owner|tenant|neighbou?r|lead|guy|bloke|"
    r"woman|man|lady|reviewer|subbie|competitor|employee|apprentice)s?)\b"
)
_AUTHORITY = (
    r"(?:ato|tax(?:man| office)?|auditors?|accountant|police|insurer|insurance(?: company)?|worksafe|council|vba|"
    r"fair trading|consumer affairs|court|regulator|authorities|bank)\b"
)


def _law(name: str, because: str, hints: str, *patterns: str) -> Rule:
    return message_rule(name, _SAFETY, because, hints, *patterns, quoted="outgoing counts")


RULES: tuple[Rule, ...] = (
    _law(
        "backdating",
        "a date that is not true would be on a record",
        "dat",
        r"\bback[\s-]?dat(?:e|ing)\b|\b(?:antedate|predate) (?:the|an?|it|this|invoice|quote)\b",
        rf"\b{_MAKE}{_SOME} back[\s-]?dated\b",
        r"\b(?:change|alter|fudge|fiddle|fake) the (?:invoice|payment|receipt|completion|inspection|quote|signing|job)'?s? date"
        r"(?: \S+){0,5} to (?:last|before|an? earlier|earlier)\b",
    ),
    _law(
        "forging",
        "a record would be forged",
        "review forg falsif fake doctor fudge phon bogus false made fictitious sham sign",
        r"\b(?:forg(?:e|ing)|falsify(?:ing)?) (?!a (?:path|relationship|partnership|bond)|the way|ahead)"
        r"(?:an?|the|his|her|their|our|my|some|customer|[\w]+'s|documents?|signatures?|records?|numbers|invoices?)\b",
        r"\bdoctor(?:ing)? (?:the |a |an |his |her |their |some )?(?:\w+ )?(?:photos?|invoices?|receipts?|reports?|documents?|quotes?|"
        r"records?|certificates?|numbers)\b",
        r"\b(?:write|post|leave|make up|invent|buy)\b[^.;\n]{0,40}\breviews?\b[^.;\n]{0,20}\b(?:as if|pretending|as (?:a |the |our )?customers?|ourselves)\b",
        r"\bfudge (?:the |some |our )?(?:\w+ )?(?:numbers|figures|report|measurements|photos)\b",
        rf"(?:^|[.,;\n] ?|\b(?:please|to|and|just|can you|then|could you) )fake (?:an?|the|his|her|their|some|[\w]+'s) (?:\w+ )?{_DOCUMENTS}\b",
        rf"\b{_MAKE}{_SOME} (?:fake|phone?y|bogus|false|made[\s-]up|fictitious|sham) (?:\w+ ){{0,2}}{_DOCUMENTS}\b",
        r"\bsign (?:it|this|the \w+|that)(?: \w+){0,3} (?:as|as if you were|pretending to be) (?:the )?(?:customer|client|him|her|"
        r"homeowner|owner|they)\b",
    ),
    _law(
        "laundering",
        "money would be laundered",
        "launder",
        r"\blaunder(?:ing)?\b(?! (?:the |our |his )?(?:uniform|overall|clothes|drop ?sheet|towel|shirt))",
    ),
    _law(
        "hiding_evidence",
        "evidence would be hidden or destroyed",
        "evidence trail tracks incriminat hid conceal cover asbestos see know find notice",
        r"\b(?:delete|destroy|shred|hide|hiding|erase|remove|get rid of|burn|tamper with|alter|conceal|wipe|bury|cover up|lose)"
        r"(?: \S+){0,4}? (?:evidence(?! of (?:moss|mould|rust|birds|possums|lichen|rats))|audit trail|paper trail|incriminating)\b",
        r"\bcover(?:ing)? (?:up )?(?:our|my|your|his|the) tracks\b|\bcover (?:this|it) up (?:from|before|so)\b",
        rf"\b(?:hide|hiding|conceal)\b[^.;\n]{{0,40}}\bfrom (?:the )?{_AUTHORITY}",
        rf"\b{_AUTHORITY}[^.;\n]{{0,10}} (?:must not|mustn't|can't|shouldn't|must never|will never|never|won't|doesn't|don't) "
        r"(?:sees?|knows?|finds? out|notices?|hears?)\b",
        r"\b(?:don't|do not|never) (?:tell|mention|disclose|report)\b[^.;\n]{0,40}\basbestos\b",
    ),
    _law(
        "evading_tax",
        "tax would be evaded",
        "tax gst book table cash",
        r"\b(?:evade|dodge|avoid paying|cheat on|fiddle|get out of(?: paying)?) (?:the |our |any )?(?:tax|taxes|gst)\b",
        r"\boff the books\b|\bunder the table\b(?! saw)",
        r"\bcash\b[^.;\n]{0,25}\b(?:no|without|avoid|skip) (?:the |any )?(?:gst|tax|invoice|receipt|paperwork)\b",
        r"\b(?:no|without|skip the|leave off) (?:gst|tax|invoice|paperwork)\b[^.;\n]{0,25}\bcash\b",
    ),
    _law(
        "bribing",
        "somebody would be bribed",
        "brib kickback pay_off slip grease",
        r"\bbrib(?:e|ing)\b",
        r"\b(?:pay|give|offer|arrange|slip)(?: \S+){0,3} kickbacks?\b",
        r"\b(?:pay off|grease|slip)(?: the)? (?:\w+ )?(?:inspector|council|surveyor|certifier|assessor)\b",
    ),
    _law(
        "threatening",
        "somebody would be threatened or harmed",
        "blackmail extort threaten intimidat harass stalk scare hurt harness protection",
        rf"\b(?:blackmail|extort|threaten|intimidate|harass|stalk|hurt|scare) {_PERSON}",
        r"\b(?:blackmail|threaten|extort) (?!to\b)\w+ (?:with|until|unless|into|if|so)\b",
        r"\b(?:go up|work|climb|get (?:up )?on (?:the )?roof|send \w+(?: \w+)? up)\b[^.;\n]{0,30}\bwithout (?:an? |any |the |their )?"
        r"(?:harness(?:es)?|fall protection|edge protection|safety (?:gear|harness))",
    ),
    _law(
        "defrauding",
        "somebody would be deceived for money",
        "insur claim fraud rip_off scam swindl bill charge invoice impersonat",
        r"\b(?:inflate|exaggerate|pad|bump up|overstate|make up)(?: \S+){0,4} (?:damage|claim|hours|invoice|quote|measurements)\b"
        r"[^.;\n]{0,40}\b(?:insurance|insurer|claim|assessor)\b",
        r"\binsurance fraud\b|\b(?:defraud|swindle|scam|rip off) (?:him|her|them|the|our|this|that|an?|old|elderly) ?",
        r"\bdouble[\s-](?:bill|charge|invoice)\b",
        r"\b(?:bill|charge|invoice)(?: \S+){1,4} twice\b",
        r"\b(?:bill|charge|invoice)(?: \S+){1,6}? for (?:work|things|hours|materials|tiles|repairs|something|a job) (?:that )?(?:we |you |they "
        r"|he |was |were )?(?:never|didn't|did not|haven't|hasn't|not)\b",
        r"\bimpersonat(?:e|ing)\b",
    ),
)
