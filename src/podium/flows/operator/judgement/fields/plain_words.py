"""English words that are never somebody's name, a place or an id by themselves."""

from __future__ import annotations


def words_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


MONTHS = words_in(
    "january february march april may june july august september october november december"
)
WEEKDAYS = words_in(
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed weds thu thur thurs fri"
)

FUNCTION_WORDS = words_in("""a about after again all also am an and any are aren't as asap at away be because been before being both but by can
    can't cannot could did didn't do does doesn't doing don't done down each either else etc ever every everyone everything
    few for from get gets getting go goes going got had has have having he he's her here hers him his how i i'd i'll i'm
    i've if in into is isn't it it's its just let let's like me more most much my near need needs neither new no nobody
    none nor not nothing now of off ok okay on once one only onto or other our ours out over own per please re same shall
    she she's should since so some somebody someone soon still such than thanks thank that that's the their theirs them
    then there these they they're this those though through till to today tomorrow tonight too two under until up upon us
    very via was we we'll we're we've were what what's when where whether which while who who's whom whose why will with
    within without would yes yesterday yet you you'll you're your yours cheers ta mate hi hey hello morning afternoon
    arvo evening night noon midday midnight week fortnight month quarter year day days weeks months years hour hours urgent
    urgently ready sorry good sure well back around another first last next old existing following current latest recent
    recently already later early late""")

VERBS = words_in("""accept accepted accepting add added adding allocate answer approve archive archived arrange ask asked assign
    assigned assigning attach bill book booked booking bring build call called calling came cancel cancelled cancelling
    change changed chase check checked close closed collect come complete completed completing confirm contact contacted
    copy correct create created creating decline declined delegate delete delivered deliver dial draft edit email emailed
    emailing enter estimate fetch file fill finalise finalised finalize finalized find finish finished fix follow found
    generate give gave grab handle hold invoice invoiced issue keep know leave left list load lodge log look lost made
    mail make mark marked message move moved moving named note open order paid pass pay paying phone phoned pick
    pop post prepare print process pull push put quote quoted raise rang read rebook receive received record recorded
    refund register remind remove rename reopen repair replace reply report request reschedule reset respond restore
    restart resume return reverse review ring rung run save say saying says schedule scheduled search see seems send
    sending sent serve set setting setup share show showing sign snapshot sold start started starting status stop
    submit submitted take taken taking tell text texted texting told try turn undo unassign update updated updating
    upload uploaded use verify view void voided wait want wanted wants was went win won work write""")

CONTACT_WORDS = words_in("""phone ph mob mobile cell tel telephone number no num email e-mail mail address suburb postcode name customer client
    contact person caller owner homeowner tenant landlord details sms app website web site id lead leads
    pty ltd house place home office team""")

TITLES = words_in("mr mrs ms miss mx dr prof sir")
PARTICLES = words_in(
    "van von der den de del della di da dos du la le ter ten bin ibn al el st mac o'"
)

GIVEN_NAMES_THAT_ARE_WORDS = words_in("""mark will bill grant rose may june april august chase drew rob pat sue frank dean jack art ray guy hope faith joy
    grace dawn summer penny lance wade heath miles rich josh cliff dale glen clay bob bo don neil nick ken max""")
"""Names first, when what stands around them says so."""

NEVER_NAMES = FUNCTION_WORDS | VERBS | CONTACT_WORDS | MONTHS | WEEKDAYS
