"""All attacks."""

from tests.integration.attacks.attack import Attack
from tests.integration.attacks.cases.escapes_links import LINKS
from tests.integration.attacks.cases.escapes_processes import PROCESSES
from tests.integration.attacks.cases.files import FILES
from tests.integration.attacks.cases.git_imports import IMPORTS
from tests.integration.attacks.cases.git_objects import OBJECTS
from tests.integration.attacks.cases.git_plants import PLANTS
from tests.integration.attacks.cases.git_refs import REFS
from tests.integration.attacks.cases.network import NETWORK
from tests.integration.attacks.cases.shell_programs import PROGRAMS
from tests.integration.attacks.cases.shell_words import WORDS
from tests.integration.attacks.cases.state import STATE

_GROUPS = (
    *(REFS, PLANTS, OBJECTS, IMPORTS, FILES, LINKS, PROCESSES),
    *(NETWORK, WORDS, PROGRAMS, STATE),
)

ATTACKS: tuple[Attack, ...] = tuple(attack for group in _GROUPS for attack in group.attacks)
