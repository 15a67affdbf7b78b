"""What a basket costs."""


def total(prices: list[float], discount: float = 0, shipping: float = 0) -> float:
    """The sum of the prices, less a discount in per cent, plus shipping."""
    return round(sum(prices) - discount + shipping, 2)
