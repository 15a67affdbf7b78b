"""Tokens of a message: cleaned, cut, stemmed; typing errors; English verbs by the kind of act they stand for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(r"(?=[\w-]*\d)[^\W_]+(?:[_-]+[^\W_]+)*|[^\W_]+(?:['-][^\W_]+)*")
"""A word, or a reference such as `INV-9` and `lead_7f3a`, which has a digit and stays whole."""
_CONTRACTED = re.compile(r"'(?:s|re|ve|ll|m)$")
_STRAIGHT = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "`": "'", "“": '"', "”": '"', "–": "-", "—": "-"}
)
_LINES = {"\n", "\r", "\t", "\u2028", "\u2029", "\u0085"}

_STOPWORDS = (
    "a an the this that these those there here of to in on at by for from with into onto as per via re about"
    " i me my mine we us our ours you your yours he him his she her hers it its they them their theirs one ones"
    " is are was were be been being am do does did has have had having will would shall should can could may"
    " might must and or but so then than also too just now please pls plz thanks thank cheers ta hi hey hello"
    " ok okay yes yeah yep well want wants wanted need needs needed like id im ive lets let go ahead some any"
    " all both each every such very really quite still already currently right if whether while which who whom"
    " whose what when where why how not no nor dont doesnt didnt wont cant couldnt shouldnt wouldnt isnt arent"
    " never up today tomorrow tonight yesterday mate etc eg ie think hope sure maybe"
    " gotta gonna wanna first second whats whos hows wheres whens thats theres able kindly thx ty u ur gday self myself asap urgent urgently immediately straightaway whenever rush something"
    " anything thing things stuff guy called named got number after before until till til next last"
)


def token_set(text: str) -> frozenset[str]:
    """The words that stand in one line."""
    return frozenset(text.split())


STOPWORDS = token_set(_STOPWORDS)
"""Words that hold a sentence together and say nothing of what is to be done."""

DENIALS = token_set(
    "not dont never nto donot dnt isnt arent wasnt werent hasnt havent hadnt didnt doesnt wont cant cannot couldnt"
    " shouldnt wouldnt mustnt nobody noone nothing"
)
DENIED = "¬"
"""Stands in place of any word that denies: `not finished` is another thing than `finished`."""

_IRREGULAR = {
    "sent": "send", "paid": "pay", "made": "make", "found": "find", "gave": "give", "given": "give",
    "wrote": "write", "written": "write", "took": "take", "taken": "take", "shown": "show", "began": "begin",
    "begun": "begin", "held": "hold", "rang": "ring", "brought": "bring", "payment": "pay", "payments": "pay",
    "people": "person", "sms": "sms", "status": "status", "news": "news",
    "takings": "takings", "address": "address", "need": "need",
    "speed": "speed", "booking": "book", "bookings": "book", "mail": "email", "emails": "email", "texts": "text",
}  # fmt: skip
_CHAT = {
    "y": "why", "wat": "what", "wots": "whats", "wot": "what", "cos": "because", "coz": "because", "bc": "because",
    "r": "are", "gunna": "gonna", "w": "with", "w/": "with", "tho": "though",
}  # fmt: skip
"""What people write for short."""
_VOWEL = re.compile(r"[aeiouy]")
_LONG_INGS = 6
_SHORT_WITH_LL = 6
"""Shorter remainders have their second l by themselves: `called`, but not `cancelled`."""
_SHORT_OPEN = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")
"""A remainder such as `mov` or `not`, which lost its e."""


@dataclass(frozen=True, slots=True)
class TaggedToken:
    """One word of a text, at `start:end` of it."""

    text: str
    """Case-folded, without apostrophes."""
    stem: str
    start: int
    end: int
    capital: bool = False
    kind: str = ""
    """Kind of the value that the token is part of: `phone`, `id:lead`, `text`; empty for a plain word."""


def clean(text: str) -> str:
    """The text in one spelling of characters, without controls and without what cannot be seen."""
    text = unicodedata.normalize("NFKC", text).translate(_STRAIGHT)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character in _LINES:
        return "\n" if character != "\t" else " "
    category = unicodedata.category(character)
    if category == "Zs":
        return " "
    return "" if category in ("Cc", "Cf", "Cs", "Co", "Cn") else character


def tokenize(text: str) -> list[TaggedToken]:
    """The words of a text that was cleaned, in their order."""
    return [
        TaggedToken(folded, stem(folded), start, end, text[start].isupper())
        for folded, start, end in _folded(text)
    ]


def _folded(text: str) -> Iterator[tuple[str, int, int]]:
    """Each word case-folded and without apostrophes, and where it stands."""
    for match in _TOKEN.finditer(text):
        token = match.group().casefold()
        token = _CHAT.get(token, token)
        if "'" in token:
            token = _CONTRACTED.sub("", token).replace("'", "")
        if "-" not in token or any(character.isdigit() for character in token):
            yield token, match.start(), match.end()
        elif token[1] == "-" or STOPWORDS.issuperset(token.split("-")):
            # `e-mail` and `to-do` are words; `roof-check` is two.
            yield token.replace("-", ""), match.start(), match.end()
        else:
            start = match.start()
            for part in token.split("-"):
                yield part, start, start + len(part)
                start += len(part) + 1


@lru_cache(maxsize=8192)
def plain_tokens(text: str) -> tuple[str, ...]:
    """The words of a text of the registry, which is read more than once."""
    return tuple(token for token, _, _ in _folded(text))


def stems_of(text: str) -> list[str]:
    """The stems of all words that say something, and `DENIED` for one that denies it."""
    return [
        DENIED if token in DENIALS else stem(token)
        for token in plain_tokens(text)
        if token not in STOPWORDS or token in DENIALS
    ]


@lru_cache(maxsize=32_768)
def stem(token: str) -> str:
    """The word without its endings. Only equality of stems means anything."""
    if token in _IRREGULAR:
        return _IRREGULAR[token]
    if len(token) < 4 or not token.isalpha():
        return token
    if token.endswith("ings") and len(token) > _LONG_INGS:
        # `takings` are no taking.
        return token
    token = _without_plural(token)
    token = _without_tense(token)
    for ending, instead in (("ization", "iz"), ("isation", "iz"), ("ise", "iz"), ("ize", "iz")):
        if token.endswith(ending) and len(token) - len(ending) >= 3:
            return token.removesuffix(ending) + instead
    if token.endswith("ion") and len(token) > 6:
        return token[:-3]
    if token.endswith("ment") and len(token) > 7:
        return token[:-4]
    return token[:-1] if token.endswith("e") and len(token) > 4 else token


def _without_plural(token: str) -> str:
    if token.endswith("ies") and len(token) > 4:
        return token[:-3] + "y"
    if token.endswith(("ches", "shes", "sses", "xes", "zes")):
        return token[:-2]
    return token if token.endswith(("ss", "us", "is")) or not token.endswith("s") else token[:-1]


def _without_tense(token: str) -> str:
    for ending in ("ing", "ed"):
        rest = token.removesuffix(ending)
        if rest == token or len(rest) < 2 or not _VOWEL.search(rest):
            continue
        if rest.endswith("ll") and len(rest) < _SHORT_WITH_LL:
            return rest
        if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "aeiosz":
            return rest[:-1]
        if len(rest) == 3 and _SHORT_OPEN.fullmatch(rest):
            return rest + "e"
        if rest.endswith("is") and len(rest) > 4:
            return rest[:-1] + "z"
        return rest
    return token


_ONE_ERROR_FROM, _TWO_ERRORS_FROM = 4, 7
"""Letters a word must have before one or two errors in it are forgiven; shorter ones are too alike."""
_SHORTEST = 3
"""Letters of the shortest abbreviation."""
_VOWELS = frozenset("aeiou")
_MAX_REMEMBERED = 4096
"""Answers that are remembered."""


def _character_mask(token: str) -> int:
    mask = 0
    for character in token:
        mask |= 1 << (ord(character) & 31)
    return mask


class Speller:
    """Knows a vocabulary. Words are found by first letter and length, then by their letters."""

    def __init__(
        self, vocabulary: Iterable[str], likely: Iterable[str] = (), things: Iterable[str] = ()
    ) -> None:
        """`likely`: those that are meant where others are as near; `things`: those that people abbreviate."""
        self._things = frozenset(things)
        self._likely = frozenset(likely)
        self._vocabulary = self._likely.union(vocabulary)
        self._shelves: dict[tuple[str, int], list[tuple[str, int]]] = {}
        for token in sorted(self._vocabulary):
            if len(token) >= _ONE_ERROR_FROM and token.isalpha():
                shelf = self._shelves.setdefault((token[0], len(token)), [])
                shelf.append((token, _character_mask(token)))
        self._answers: dict[str, tuple[str, int]] = {}

    def __contains__(self, token: str) -> bool:
        return token in self._vocabulary

    def correct(self, token: str) -> tuple[str, int]:
        """The nearest known word and how many errors lie between; the word itself and 0 if none is near."""
        if token in self._vocabulary or len(token) < _ONE_ERROR_FROM or not token.isalpha():
            return token, 0
        if token not in self._answers:
            if len(self._answers) >= _MAX_REMEMBERED:
                self._answers.clear()
            self._answers[token] = self._nearest(token)
        return self._answers[token]

    def written_out(self, token: str) -> str:
        """The thing that an abbreviation stands for: `insp`, `invs`, `qte`. The word itself if it is none."""
        many = len(token) > _SHORTEST and token.endswith("s")
        for short, ending in ((token, ""), (token[:-1], "s")) if many else ((token, ""),):
            meant = {thing for thing in self._things if _abbreviates(short, thing)}
            shortest = min(meant, key=lambda thing: (len(thing), thing), default="")
            if shortest and all(thing.startswith(shortest[:-1]) for thing in meant):
                return shortest + ending
        return token

    def _nearest(self, token: str) -> tuple[str, int]:
        allowed = 2 if len(token) >= _TWO_ERRORS_FROM else 1
        near = (
            (distance(token, candidate, allowed), candidate)
            for candidate in self._alike(token, allowed)
        )
        candidates = [
            (errors, candidate not in self._likely, sorted(candidate) != sorted(token), candidate)
            for errors, candidate in near
            if errors <= (allowed if len(candidate) >= _TWO_ERRORS_FROM - 1 else 1)
        ]
        errors, _, _, best = min(candidates, default=(0, True, True, token))
        return best, errors

    def _alike(self, token: str, allowed: int) -> Iterable[str]:
        mask = _character_mask(token)
        # A first letter is seldom wrong, but the first two are often in the wrong order.
        for first in dict.fromkeys((token[0], token[1])):
            for length in range(len(token) - allowed, len(token) + allowed + 1):
                for candidate, candidate_mask in self._shelves.get((first, length), ()):
                    swapped = candidate[:2] == token[1::-1]
                    if (first == token[0] or swapped) and (
                        mask ^ candidate_mask
                    ).bit_count() <= 2 * allowed:
                        yield candidate


def _abbreviates(short: str, token: str) -> bool:
    """`insp` is how a word begins; `qte` and `txt` are its consonants, perhaps with its last letter."""
    if len(short) < _SHORTEST or len(short) >= len(token) or short[0] != token[0]:
        return False
    if token.startswith(short):
        return True
    left = iter(token)
    inside = all(character in left for character in short)
    return inside and short[-1] in (token[-1], *"tgdk") and not _VOWELS.intersection(short[1:-1])


def distance(one: str, other: str, most: int) -> int:
    """Letters inserted, left out, replaced or swapped with their neighbour; `most + 1` when there are more."""
    # Late: most messages have no word that nobody knows.
    from rapidfuzz.distance import OSA

    return OSA.distance(one, other, score_cutoff=most)


_EVERYDAY = """
    able above accept back everything run across actual afternoon agree almost alone along always amount another answer anybody anyone anyway
    apart appear area arrive asked attend aunt away baby bank based basic beach beat beautiful because become before begin
    behind being believe belong below beside best better between bigger birth bite black blame block blood blow blue board
    boat body bone born borrow boss both bottle bottom bought bowl brain branch brave bread break breakfast breath bridge
    brief bright bring broad broke broken brother brought brown brush build burn business busy butter button cable cake
    camp candle card care careful carry case cash catch cause cell centre certain chair chance change charge chase cheap
    cheese chest child choice choose church circle city class clean clear climb clock cloth cloud coach coast coat coffee
    cold college colour come common company compare concern control cook cool copper copy corner cost cotton could count
    country couple courage course court cover crack crash cream cross crowd cruel cupboard curtain cute daily damage dance
    danger dark daughter dead deal dear death debt decide deep degree demand depend desert desk dinner direct dirt
    discount distance doctor dollar door doubt drag draw dream dress drink drive dust duty each early earn earth east easy
    edge effect eight either electric else empty end enemy energy engine enjoy enough enter entire equal error even event
    every everybody everyone exact example except excuse expect explain extra face fact factory fail faint fair faith fall
    false family famous fancy far farm fast father fault favour fear feed feel female fence field fight figure fill film
    final fine finger fire firm first fish five flat flight flood floor flour flow flower fold follow food fool foot force
    forget forgive fork form forward four free freeze fresh friend from front fruit full funny game garage garden gate
    general gentle gift girl glad glass goal goat gold good grain grand grass grave great green grey ground group grow
    guard guess guest guide habit hair half hall hand handle hang happen happy hard hate have head hear heart heat heavy
    help here hide high hill hire hold hole holiday home honest hope horse hospital hotel hour house however huge human
    hundred hungry hunt hurry hurt husband idea ideal improve include income increase indeed inside iron island jump keep
    kick kill kind king kiss kitchen knee knife knock know ladder lady lake lamp land lane large last late later laugh law
    layer lazy leaf leak lean learn least leather leave left lend length less lesson letter level lift light like limit
    line lion liquid listen little live local lock lonely long lose lost love lower luck lunch machine main maintain make
    male manage manner many market marry match material matter maybe meal mean measure meat medicine meet meeting member
    memory mend mercy metal method middle might mile milk mind mine minute mirror miss mistake mister mix modern moment
    money month mood moon more morning most mother mountain mouse mouth move much music must nail name narrow nation
    nature near neat neck need needle neighbour neither nerve nest never nice night nine noise none noon nose nothing
    nurse obey object ocean odd offer office often onion only operate opinion opposite orange order ordinary other ought
    over owner pack page pain paint pair pale paper parent park part party pass past path patient pattern pause peace
    pencil people pepper perfect perhaps person phone photo pick picture piece pink pipe place plain plan plane plant
    plastic plate play pleasant please pleasure plenty pocket point poison police polite pool poor popular possible
    potato pound pour power practice praise pray prefer present press pretty prevent price pride print prison private
    prize problem produce promise proper protect proud prove public pull punish pure push queen quick quiet quite rabbit
    race radio rail rain raise rather reach ready real reason recent recipe record red reduce relax remain remember remind
    rent repair repeat reply request rescue respect rest result return rice rich ride right ring rise river road rock roll
    roof room root rope rough round rubber rude rule ruler rush sad safe sail salary sale salt same sand save scale
    school science scissors scratch screen screw seat second secret see seed seem sell sense separate serious serve seven
    several severe sewing shade shadow shake shape share sharp sheep sheet shelf shine ship shirt shock shoe shoot shop
    short shot should shoulder shout sick side signal silence silly silver similar simple since sing single sink sister
    site six size skill skin skirt sleep slide slip slope slow small smell smile smoke smooth snow soap soft soil soldier
    solid solve some song soon sore sorry sort sound soup south space spare speak special speed spell spend spoil spoon
    sport spot spread spring square stage stain stairs stamp stand star start state station stay steal steam steel steep
    step stick stiff still stir stomach stone stop store storm story strange street stretch strike string strong study
    stupid such sudden suffer sugar suggest suit summer supper sure surface surprise sweet swim sword table tail take talk
    tall tape taste teach team tear tell ten tent term terrible test than thank that their them then there these they
    thick thief thin thing think third this those thought thread three throat through throw thumb ticket tidy tie tiger
    tight till time tiny tire title today toe together tomorrow tongue tool tooth total touch toward tower town toy track
    trade traffic train transport travel treat tree trick trip trouble truck true trust truth turn twice twin type under
    understand unit until upon upper usual vacation valley value vegetable very village visit voice wait wake walk wall
    want warm wash waste watch water wave weak wear weather wedding week weight welcome well west wheel where which while
    white whole wide wife wild will wind window wine wing winter wire wise wish with without woman wonder wood wool word
    work world worry worst would wrong year yellow yesterday young zero
"""

EVERYDAY = frozenset(stem(token) for token in token_set(_EVERYDAY))
"""Stems of the commonest words."""


READ = "read"

_KINDS = {
    READ: "show list find get view see display search fetch look lookup check what which who where count report"
    " tell give summarise summarize pull browse read query know verify validate audit many much any open",
    "create": "create new add make open log register record enter raise generate put capture draft write lodge"
    " prepare start build issue set insert file pop chuck whack stick jot leave store upload attach save import load",
    "update": "update change edit correct fix amend modify set rename adjust replace move mark switch put bump shift",
    "remove": "delete remove archive discard scrap drop bin trash purge erase cancel void abort revoke annul kill"
    " withdraw destroy wipe clear ditch",
    "restore": "restore reopen reinstate unarchive recover revert undo reactivate unvoid uncancel resume bring reverse",
    "send": "send text txt email message sms mail notify forward ping deliver contact ask request remind tell shoot drop flick",
    "finish": "complete finish finalize finalise close conclude done submit wrap lock lodge finished mark tick",
    "begin": "start begin commence kick launch",
    "assign": "assign allocate give delegate hand reassign put pass",
    "schedule": "schedule book arrange reschedule plan slot organise organize set push line pencil",
    "agree": "accept approve sign confirm agree accepted mark",
    "decline": "decline reject refuse declined mark",
    "receive": "pay record receive log take enter mark",
}

_OPPOSED = {
    frozenset(pair)
    for pair in (
        ("create", "remove"), ("create", "restore"), ("remove", "restore"), ("remove", "finish"), ("remove", "send"),
        ("remove", "schedule"), ("remove", "agree"), ("remove", "begin"), ("remove", "receive"), ("remove", "assign"),
        ("remove", "update"), ("agree", "decline"), ("begin", "finish"), ("restore", "finish"), ("decline", "finish"),
        ("restore", "send"), ("restore", "schedule"), ("restore", "begin"), ("restore", "receive"),
    )
}  # fmt: skip
"""Kinds of acts of which one undoes the other, or after which the other makes no sense."""


def _kinds_by_verb() -> dict[str, frozenset[str]]:
    kinds_by_verb: dict[str, set[str]] = {}
    for kind, verbs in _KINDS.items():
        for verb in verbs.split():
            kinds_by_verb.setdefault(verb, set()).add(kind)
    return {verb: frozenset(kinds) for verb, kinds in kinds_by_verb.items()}


ACTION_VERBS = _kinds_by_verb()
"""Verb in its plain form → the kinds of acts it may stand for."""
_BY_STEM: dict[str, frozenset[str]] = {}
for _word, _kinds in ACTION_VERBS.items():
    _BY_STEM[stem(_word)] = _BY_STEM.get(stem(_word), frozenset()) | _kinds

_PHRASAL = {
    READ: "give me, give us, get me, tell me, look up, look for, bring up, pull up, how many, how much, look at, check on, look into",
    "restore": "bring back, put back, get back, open again, open back, roll back, take back, go back, come back, call back",
    "create": "set up, write up, write down, draw up, make up, work up, take down, open up, put down, put in, key in, type up, note down, jot down",
    "remove": "call off, rid of, throw out, write off, put away, file away, take off, cross off, take down, knock off,"
    " strike off, shut off, scrap off, pull pin, get rid",
    "send": "let know, get out, fire off, send off, send out, send through, shoot off, shoot over, flick over, flick through,"
    " mail out, send over, get to, follow up, write to, let know",
    "finish": "close out, wrap up, sign off, tick off, hand in, close off, lock in, finish off, knock over, check off",
    "begin": "kick off, get going, start off, get started",
    "assign": "hand over, pass on, pass over, give to, hand to, look after",
    "schedule": "set up, pencil in, line up, slot in, book in, lock in, put calendar, send out, put off, push back, push out, bring forward, get in",
    "receive": "drop off, hand over, come in, turn up",
    "agree": "sign off, go ahead, say yes, said yes, thumbs up",
    "decline": "knock back, turn down, say no, said no, fell through",
    "update": "is now, are now, move along, bump along, put in, put into, put to",
}


def _phrasal() -> dict[tuple[str, str], frozenset[str]]:
    kinds_by_pair: dict[tuple[str, str], frozenset[str]] = {}
    for kind, phrases in _PHRASAL.items():
        for phrase in phrases.split(", "):
            verb, particle = phrase.split()
            pair = (stem(verb), particle)
            kinds_by_pair[pair] = kinds_by_pair.get(pair, frozenset()) | {kind}
    return kinds_by_pair


PHRASAL = _phrasal()
"""A verb and what follows it, soon or later, that are one verb together: `put it back`."""
PARTICLES = token_set("back out off away again down over through along")
INTRODUCES = token_set("to that saying about because reading says cause")
"""Words behind which a text may stand that is a value: a task to …, a note that …."""
VAGUE = token_set(
    "something stuff usual deal dealt sort sorted sorting handle whatever tidy thing care"
)
"""Words that leave open what is to be done."""
VAGUE_PAIRS = frozenset(
    tuple(pair.split())
    for pair in (
        "work on", "working on", "get moving", "get onto", "get cracking", "follow up", "take care", "needs attention",
        "eye on", "chase up", "think about", "talk about", "talk to", "prepare for", "ready for",
    )
)  # fmt: skip
"""Two words that do so together."""
MAKING = frozenset(map(stem, ("add", "create", "make", "put", "write", "set", "enter")))
"""Verbs that say nothing of what is made."""
LISTING = frozenset(map(stem, ("list", "search", "find")))
"""Verbs of tools that show many things."""


def kinds_of(verb_stem: str) -> frozenset[str]:
    """The kinds of acts a verb may stand for; empty when it is none that is known."""
    kinds = _BY_STEM.get(verb_stem)
    if kinds is None and verb_stem.startswith("un") and verb_stem[2:] in _BY_STEM:
        return frozenset({"restore"})
    return kinds or frozenset()


@lru_cache(maxsize=4096)
def agreement(requested: frozenset[str], done: frozenset[str]) -> float:
    """Compare the requested acts with those of a tool: 1 the same, 0 unknown, -1 the contrary."""
    if not requested or not done:
        return 0.0
    if requested & done:
        return 1.0
    if READ in done or requested == {READ}:
        return -1.0
    if all(frozenset((one, other)) in _OPPOSED for one in requested - {READ} for other in done):
        return -1.0
    return -0.3
