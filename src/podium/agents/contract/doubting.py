"""Words around an object that take it back, or that never gave it, and farewells that mean nothing.

An agent says "wait", and a program that reads only JSON would not hear it. The lists are short and
crude on purpose: a word too many in them costs one more question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_TAKES_BACK = re.compile(
    r"\b(?:wait|actually|ignore|disregard|corrections?|hold on|instead|scratch that|second thoughts?|on reflection|"
    r"or rather|one moment|just a moment|my mistake|i was wrong|not yet|not final|not my|never ?mind|oops|hmm+|"
    r"retract\w*|take (?:that|it|this) back|changed my mind|no longer|(?:still|first) (?:have|need|want) to|"
    r"let me (?:re-?)?(?:check|think|look|verify|see)|would be wrong|would have (?:said|been)|shall i|should i|"
    r"(?:could|can|will|should|must) ?not|(?:could|should|ca|wo)n['’]t|placeholder|(?:just|only) an example|"
    r"stimmt nicht|doch nicht|falsch|stattdessen|korrektur|en fait|attendez|espera)\b"
    r"|^\W*(?:moment|but|however|unless|except|although|though|aber|mais|pero|nope|no[,.:!])",
    re.IGNORECASE,
)
_ANSWER = r"(?:answer|verdict|reply|response|result|decision|output)"
_NOT_GIVEN = re.compile(
    r"^\W*(?:if|once|until|unless|when)\b"
    rf"|\b(?:would|(?:not|isn['’]t|wasn['’]t) (?:my|the|an?) (?:\w{{1,20}} )?{_ANSWER}|printed|"
    r"(?:tell|told|tells|ask|asks|asked|want|wants) (?:me|us|you) to|(?:says?|said) to|"
    r"possible|draft|template|sample|placeholder|tentative|preliminary|(?:could|might|may) be|do not|don['’]t|"
    rf"(?:an|for) (?:example|instance)|such as|(?:previous|old|earlier|first) {_ANSWER})\b|\be\.g\.",
    re.IGNORECASE,
)
_SENTENCE_BEGINS = re.compile(r"[.!?]\s")
_FENCE_BEGINS = re.compile(r"[`~]{1,8}\w{0,12}$")
# What models, renderers and terminals put behind an answer by themselves. A sign that could mean
# something, such as a question mark or a cross, is not among it.
_DECORATION = re.compile(
    r"(?:[\s\u200b\ufeff;)}`*_\u2500-\u257f]"
    r"|\.(?!\.)|~{3,}|-{3,}"
    r"|</(?:s|pre|code|(?:(?:final|json|structured|my)[_-])?(?:answer|final|output|result|json|response|reply|payload))>"
    r"|<\|(?:im_end|eot|eot_id|eom_id|end|endoftext|end_of_text|end_of_turn|return)\|>|<end_of_turn>)*+",
    re.IGNORECASE,
)

_WORK = (
    r"(?:change|fix|work|task|plan|report|review|code|implementation|feature|branch|commit|test|check|file|document|"
    r"documentation|diff|patch|suite|verification|analysis|investigation|research|merge|conflict|requested change)s?"
)
_DONE = (
    r"(?:added|addressed|applied|checked|committed|completed|covered|created|documented|finished|fixed|followed|"
    r"implemented|included|left|merged|noted|passed|read|resolved|reviewed|ran|saved|tested|updated|verified|went|"
    r"written|wrote)"
)
_GOOD = (
    r"(?:all )?(?:clean|complete|correct|done|fine|good|green|in (?:order|place)|minimal|now|ready|sound|small|passing|"
    r"pass(?:es|ed)?|successful|well tested|tested)"
)
_CONDITION = r"(?:if|should|whenever|in case) (?:you|there|anything|something|any)\b"
_OFFER = (
    r"(?:please )?(?:let me know|feel free|do ?n['’]t hesitate|do not hesitate|reach out|get in touch|just (?:ask|say|ping|tell)"
    r"|ping me|ask me|(?:i['’]?m |i am |i['’]d be |i would be |always |more than )*(?:happy|glad|here|available|ready) (?:to|for|if|when)\b"
    r"|i(?:['’]ll| will) (?:be (?:here|around|happy|glad)|wait|stand by)|(?:is there )?anything else\b"
    r"|would you like me to (?:explain|elaborate|expand|walk)|" + _CONDITION + r")"
)
_FAREWELL = (
    r"(?:(?:i )?hope (?:this|that|it|you)\b|thanks?\b|thank you|many thanks|you['’]re welcome|cheers\b|best(?: regards| wishes)?\b"
    r"|(?:kind|warm) regards|sincerely|enjoy\b|good luck|great work|nice work|well done|happy \w+ing\b|have a (?:great|good|nice|lovely)\b"
    r"|(?:i['’]m |i am )?looking forward|i look forward|see you|take care|good ?bye|bye\b)"
)
_REPORT = (
    rf"(?:(?:i|we)(?:['’]ve| have)? (?:also |now |just |only )*{_DONE}\b"
    rf"|(?:also |successfully )?{_DONE}\b"
    rf"|(?:all|both|the|this|these|my|your)(?: of)?(?: the| my| your)?(?: unit| new| \d+)? {_WORK}(?: (?:is|are|was|were|has been|have been))?"
    rf"(?: now| all| successfully)* (?:{_DONE}|{_GOOD})\b"
    rf"|(?:everything|all) (?:is |was |has been |looks )?(?:now )?(?:{_DONE}|{_GOOD}|set)\b"
    r"|(?:all )?done\b|that['’]?s (?:it|all)\b|that is (?:it|all)\b|this (?:completes|concludes|finishes|ends) (?:the|my|this)\b"
    rf"|{_WORK} (?:is |are )?(?:complete|completed|done|finished|passed|passing|green)\b"
    r"|(?:the |this )?(?:json|object|block)(?: above)? (?:contains|summari[sz]es|reflects|follows|fits|matches|includes|holds)\b"
    r"|no (?:further|other|more|additional) (?:action|change|work|step|input|question)s? (?:is|are)? ?(?:needed|required|necessary)"
    r"|end of (?:the |my )?(?:report|reply|response|message|turn|review)|(?:a )?(?:short )?summary\b|notes?\b(?=:?$)|what (?:i|was) d(?:id|one)\b)"
)
_FILLER = re.compile(rf"(?:{_OFFER}|{_FAREWELL}|{_REPORT})[^{{}}\[\]<>?]*\??", re.IGNORECASE)
_CONDITIONS = re.compile(rf"\b{_CONDITION}[^,.!?;:\n]*", re.IGNORECASE)
_DOUBT = re.compile(
    r"\b(?:not?|never|nothing|nobody|neither|nor|\w+n['’]t|but|yet|except|without|until|before|although|though|while|despite|"
    r"\w*fail\w*|br[eo]k\w*|broken|crash\w*|\w*error\w*|wrong\w*|mistak\w*|\w*correct(?:ed|ion)\w*|incorrect\w*|invalid\w*|void\w*|null|"
    r"draft\w*|fake\w*|made[ -]up|(?:made|making) \w+ up|invent\w*|guess\w*|pretend\w*|assum\w*|suppos\w*|unsure|uncertain\w*|doubt\w*|"
    r"maybe|perhaps|probably|might|opposite|contrary|revers\w*|invert\w*|flip\w*|(?:other|wrong) way|otherwise|other one|rather|"
    r"overr\w+|supersed\w*|obsolete|outdated|stale|revok\w*|cancel\w*|withdr[ae]w\w*|discard\w*|scrap\w*|str[iu][kc]\w*|undo\w*|"
    r"reconsider\w*|revisit\w*|pending|remain\w*|missing|miss(?:ed|es)|lack\w*|unfinished|incomplete|partial\w*|todo|later|"
    r"red|hang\w*|leak\w*|block\w*|bugg?\w*|regress\w*|flak\w*|problem\w*|issues?|concern\w*|risk\w*|unsafe|insecure|danger\w*|bad\w*|poor\w*|"
    r"untested|unreviewed|unverified|skip\w*|disabl\w*|ignor\w*|example|sample|test run|dummy|joke|lie[ds]?|lying|sorry|apolog\w*|unfortunately|"
    r"someone else|somebody else|different\w*|differ\w*|changed? (?:my|your)|must|should|only to|for show|which|another|real|kidding|whether|counts?|imagin\w*|think|thought|believe|ones?|answers?|verdicts?|decisions?)\b",
    re.IGNORECASE,
)
_NO_MORE = re.compile(
    r"\b(?:no (?:further|other|more|additional) \w+|do(?: not|n['’]t) hesitate|(?:fixed|resolved|addressed) (?:the|all|both)? ?"
    r"(?:issues?|problems?|bugs?|errors?|concerns?)|no(?:t any)? (?:issues|problems|errors|failures|conflicts|regressions)|"
    r"without (?:any )?(?:issues|problems|errors|failures|conflicts))",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?:;])\s+|\n+|\s+[-–—]\s+")
_ORNAMENT = "✅✔🎉🚀😊🙂👍🙌✨💡🥳🙏☑ \t\u200b\ufe0f\ufeff"
_BULLET = re.compile(r"^(?:#{1,6}\s+|[-*•+]\s+|\d{1,2}[.)]\s+|\*\*|__|[\"'“(])+")
_PLAIN = re.compile(r"[\x20-\x7e\n\t‘’“”–—…é]*")


def takes_back(rest: str) -> bool:
    """Whether what follows an object may mean that it is not the answer after all."""
    return _TAKES_BACK.search(rest) is not None


def words_behind(rest: str) -> str:
    """What an agent wrote after its answer, from the first sign that is no mere decoration on."""
    decoration = _DECORATION.match(rest)
    return rest[decoration.end() :].strip() if decoration else rest


def is_filler(words: str) -> bool:
    """Whether these words behind an answer are conversation that says nothing about it: a farewell, an offer of
    help, a report that all is done. Every sentence has to be known for one, and none may hold a doubt.
    """
    plain = words.translate({ord(sign): None for sign in _ORNAMENT if not sign.isspace()})
    if not _PLAIN.fullmatch(plain) or takes_back(plain):
        return False
    # What help is offered for says nothing about the answer: "if there are any problems".
    if _DOUBT.search(_NO_MORE.sub(" ", _CONDITIONS.sub(" ", plain))):
        return False
    sentences = [_BULLET.sub("", each.strip()) for each in _SENTENCES.split(plain)]
    spoken = [each for each in sentences if each.strip("*_-)\"'”")]
    return bool(spoken) and all(_FILLER.fullmatch(each) for each in spoken)


def names_one_of(rest: str, values: Iterable[str]) -> bool:
    """Whether one of these values stands in it, at the beginning of a word: "reject" is in "rejected"."""
    return any(re.search(rf"(?<!\w){re.escape(value)}", rest, re.IGNORECASE) for value in values)


def is_only_supposed(before: str) -> bool:
    """Whether the sentence that leads to an object says that it is an example, a wish or somebody else's."""
    written = _FENCE_BEGINS.sub("", before.rstrip()).rstrip()
    sentence = _SENTENCE_BEGINS.split(written.rpartition("\n")[2][-300:])[-1]
    follows_at_once = "\n\n" not in before[len(written) :] and not sentence.endswith(
        (".", "!", "?")
    )
    leads_to_it = follows_at_once or sentence.endswith((":", "："))
    return leads_to_it and _NOT_GIVEN.search(sentence) is not None
