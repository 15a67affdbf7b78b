"""The reply contract: a validated payload or block out of whatever an agent said, or a clear no."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.agents.contract.agent import ContractedAgent
    from podium.agents.contract.block import Block, read_block
    from podium.agents.contract.messages import MessageStream, read_messages
    from podium.agents.contract.payload import ParsedPayload, read_payload
    from podium.agents.contract.reply_schema import NONCE_KEY, NotAnAnswer

__all__ = [
    "NONCE_KEY",
    "Block",
    "ContractedAgent",
    "MessageStream",
    "NotAnAnswer",
    "ParsedPayload",
    "read_block",
    "read_messages",
    "read_payload",
]

export_lazily(
    __name__,
    {
        "ContractedAgent": "agent",
        "Block": "block",
        "read_block": "block",
        "MessageStream": "messages",
        "read_messages": "messages",
        "NotAnAnswer": "reply_schema",
        "ParsedPayload": "payload",
        "read_payload": "payload",
        "NONCE_KEY": "reply_schema",
    },
)
