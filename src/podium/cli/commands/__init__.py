"""One module for each command, loaded when it is asked for."""

__all__: list[str] = []
