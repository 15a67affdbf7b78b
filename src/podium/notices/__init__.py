"""Outlets for people who look at nothing: chats, mailboxes and phones, by one URL each."""

from podium.notices.outlet import AppriseChannel, FileDeliveryLog

__all__ = ["AppriseChannel", "FileDeliveryLog"]
