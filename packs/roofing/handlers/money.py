"""Money: dollars outside, whole cents inside."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from podium.core.errors import ToolBroke


def cents(amount: float, what: str) -> int:
    """Raises `ToolBroke` for less than a cent, or for a part of one."""
    exact = Decimal(str(amount)) * 100
    if not exact.is_finite() or exact != exact.to_integral_value():
        raise ToolBroke(f"{what} is {amount} dollars; use at most two decimals")
    if exact < 1:
        raise ToolBroke(f"{what} is {amount} dollars; it must be more than zero")
    return int(exact)


def dollars(amount_cents: int) -> float:
    return amount_cents / 100


def times(unit_cents: int, quantity: float) -> int:
    """Rounded to the cent, half a cent up."""
    exact = Decimal(unit_cents) * Decimal(str(quantity))
    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def money_text(amount_cents: int) -> str:
    """For letters and messages: `$1,250.50`."""
    return f"${amount_cents / 100:,.2f}"
