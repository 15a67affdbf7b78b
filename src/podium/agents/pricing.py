"""What tokens cost, for agents that do not say it themselves."""

from __future__ import annotations


def cost_of(
    model: str, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0
) -> float | None:
    """US dollars for one exchange. None when nobody knows the model's price.

    `input_tokens` include those that came from a cache.
    """
    # Late: the price list takes a while to load, and most commands ask no agent.
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=min(cached_tokens, input_tokens),
    )
    try:
        return float(calc_price(usage, model_ref=model).total_price)
    except (LookupError, ValueError):
        return None
