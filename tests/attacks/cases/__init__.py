"""All attacks."""

from tests.attacks.attack import Attack
from tests.attacks.cases.escapes_links import LINKS
from tests.attacks.cases.escapes_processes import PROCESSES
from tests.attacks.cases.files import FILES
from tests.attacks.cases.git_imports import IMPORTS
from tests.attacks.cases.git_objects import OBJECTS
from tests.attacks.cases.git_plants import PLANTS
from tests.attacks.cases.git_refs import REFS
from tests.attacks.cases.network import NETWORK
from tests.attacks.cases.shell_programs import PROGRAMS
from tests.attacks.cases.shell_words import WORDS
from tests.attacks.cases.state import STATE

_GROUPS = (
    *(REFS, PLANTS, OBJECTS, IMPORTS, FILES, LINKS, PROCESSES),
    *(NETWORK, WORDS, PROGRAMS, STATE),
)

ATTACKS: tuple[Attack, ...] = tuple(attack for group in _GROUPS for attack in group.attacks)
