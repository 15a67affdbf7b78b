"""Start a small part of Podium alone: `python -IS isolated.py MODULE [ARGUMENT …]` calls its `main`.

A script is compiled anew at every start; what it imports is kept compiled. And a `podium` without
the packages' own `__init__` files loads nothing that the part does not ask for.
"""

import sys


def run(module: str, *arguments: str) -> None:
    here = __file__.rpartition("/")[0]
    for name, folder in (("podium", here.rpartition("/")[0]), ("podium.sandbox", here)):
        package = sys.modules[name] = type(sys)(name)
        package.__path__ = [folder]
    __import__(module)
    sys.modules[module].main(*arguments)


if __name__ == "__main__":
    try:
        run(*sys.argv[1:])
    except Exception as error:
        # With 2, because that is a denial where a hook was to be started, and 1 would be none.
        part = sys.argv[1] if sys.argv[1:] else "no module"
        sys.stderr.write(f"podium: {part!r} could not be started ({error!r})\n")
        sys.exit(2)
