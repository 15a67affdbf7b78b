"""The command line: what people and scripts type. It decides nothing."""

__all__: list[str] = []
