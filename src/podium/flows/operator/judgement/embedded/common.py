"""Everyday words. One of them is never taken for a misspelt word of the registry."""

from __future__ import annotations

from podium.flows.operator.judgement.embedded.words import stem, word_set

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

EVERYDAY = frozenset(stem(word) for word in word_set(_EVERYDAY))
"""Stems of the commonest words."""
