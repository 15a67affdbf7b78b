"""Replies as agents really give them, whole and broken, each with what is right to make of it.

The cases lie beside this file, one family to a file. They were judged by hand: what a careful
person would take for the answer, and where they would rather ask again.
"""

from podium.testing.replies.cases import BLOCKS, CONTRACTS, Expected, ReplyCase, reply_cases

__all__ = ["BLOCKS", "CONTRACTS", "Expected", "ReplyCase", "reply_cases"]
