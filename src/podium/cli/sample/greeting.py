def greet(name: str) -> str:
    return f"Hey {name}"
