"""People, suburbs, addresses and postcodes."""

from __future__ import annotations

import pytest

from tests.unit.operator.judgement.fields.bike_workshop import found, read


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("new rider: Sarah 0400 123 456 in Clayton", "Sarah"),
        ("add a rider for Sarah Jones, 0400 123 456", "Sarah Jones"),
        ("customer named Siobhan O'Brien", "Siobhan O'Brien"),
        ("sign up Jan van der Berg 0400 123 456", "Jan van der Berg"),
        ("it is for Ronald McDonald", "Ronald McDonald"),
        ("call Nguyễn Văn An back", "Nguyễn Văn An"),
        ("call Nguye\u0302\u0303n back", "Nguyễn"),
        ("a job for Anne-Marie D’Souza", "Anne-Marie D’Souza"),
        ("put Mr. Preston Smith down", "Mr. Preston Smith"),
        ("sarah jones 0400 123 456", "Sarah Jones"),
        ("bob 0411 000 222", "Bob"),
        ("bob o'shea ph. 0411 000 222", "Bob O'Shea"),
        ("in Clayton, 0400123456, Sarah, new rider", "Sarah"),
        ("0422 888 777 is Craig Dunn's number", "Craig Dunn"),
        ("a bloke called dave, wants a tune", "Dave"),
        ("Nadia will look after it", "Nadia"),
        ("for Mark", "Mark"),
        ("April Jones 0400 123 456", "April Jones"),
        ("Clayton Smith 0400 123 456 in Preston", "Clayton Smith"),
        ("Spokes Pty Ltd, 1300 555 555", "Spokes Pty Ltd"),
        ("SARAH JONES 0400 123 456", "Sarah Jones"),
    ],
)
def test_a_name_is_read_as_it_is_spelled(text: str, name: str) -> None:
    assert found("name", text) == [name]


@pytest.mark.parametrize(
    "text",
    ["Create it", "Please Finish This Today", "in April", "on Monday", "see you in Preston", "Send SMS", "the PDF", "ring 0400 123 456", "Call 0400 123 456", "my number is 0400 123 456", "tomorrow", "wants Shimano 0400 123 456", "likes a Shimano chain", "gutters wanted", "12 Smith St", "Thanks", ""],
)  # fmt: skip
def test_a_verb_a_place_or_a_month_is_nobody(text: str) -> None:
    assert found("name", text) == []


def test_words_of_the_packs_own_tools_are_nobody() -> None:
    assert "name" not in read("riders.add", "New Rider 0400 123 456 Clayton")
    assert "assignee" not in read("repair.hand_over", "Hand Over Repair R-12")


@pytest.mark.parametrize(
    ("text", "suburb"),
    [
        ("in Clayton", "Clayton"),
        ("in clayton south", "Clayton South"),
        ("GLEN WAVERLEY", "Glen Waverley"),
        ("in claytn", "Clayton"),
        ("in Calyton", "Clayton"),
        ("in glen waverly", "Glen Waverley"),
        ("0400 123 456 Dandenong Nth", "Dandenong North"),
        ("in Mt Waverley", "Mount Waverley"),
        ("saint kilda", "St Kilda"),
        ("in Warragul", "Warragul"),
        ("in Ferntree Gully", "Ferntree Gully"),
    ],
)
def test_suburb_is_known_guessed_or_stated_to_be_one(text: str, suburb: str) -> None:
    assert found("suburb", text) == [suburb]


@pytest.mark.parametrize(
    "text",
    ["in April", "in the shed", "in progress", "Carlson called", "in 2 days", "boxhill", "in It"],
)
def test_what_is_no_suburb_is_left_alone(text: str) -> None:
    assert found("suburb", text) == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("at 12 Smith St", "12 Smith St"),
        ("12 smith street", "12 smith street"),
        ("unit 3/45 High Street", "unit 3/45 High Street"),
        ("3/45 High Street", "3/45 High Street"),
        ("Unit 2, 14 Old Dandenong Rd", "Unit 2, 14 Old Dandenong Rd"),
        ("Lot 7 Smiths Road", "Lot 7 Smiths Road"),
        ("12A St Kilda Rd", "12A St Kilda Rd"),
        ("10-12 O'Connell Ave", "10-12 O'Connell Ave"),
        ("5 The Esplanade", "5 The Esplanade"),
        ("PO Box 123", "PO Box 123"),
        ("at 45 Koonawarra", "45 Koonawarra"),
        ("8 Ocean View", "8 Ocean View"),
    ],
)
def test_an_address_is_number_and_street(text: str, address: str) -> None:
    assert found("address", text) == [address]


@pytest.mark.parametrize(
    "text",
    [
        "12 bikes in the way",
        "3 new tyres close",
        "Smith St",
        "2 places",
        "40 metres ridge",
        "1 st",
        "at 9 Monday",
    ],
)
def test_what_is_no_address_is_left_alone(text: str) -> None:
    assert found("address", text) == []


def test_an_argument_for_an_address_has_suburb_and_postcode_too() -> None:
    arguments = read("riders.add", "new rider Sarah 0400 123 456 at 12 Smith St, Clayton VIC 3168")
    assert arguments == {
        "name": "Sarah",
        "phone": "+61400123456",
        "suburb": "Clayton",
        "address": "12 Smith St, Clayton VIC 3168",
        "postcode": "3168",
    }


@pytest.mark.parametrize(("text", "codes"), [("Clayton 3168", ["3168"]), ("postcode 0800", ["0800"]), ("VIC 3000", ["3000"]), ("3168", []), ("Clayton 31680", []), ("in 2026", [])])  # fmt: skip
def test_four_digits_are_a_postcode_where_a_place_makes_them_one(
    text: str, codes: list[str]
) -> None:
    assert found("postcode", text) == codes
