"""The relay: each request waits until a person or another program has written its answer."""

from podium.testing.modelserver.relay.exchange import ExchangeFolder, RelayExchange
from podium.testing.modelserver.relay.relay import Relay

__all__ = ["ExchangeFolder", "Relay", "RelayExchange"]
