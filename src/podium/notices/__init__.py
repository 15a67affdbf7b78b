"""Where people are told who look at nothing: chats, mailboxes and phones, by one URL each."""

from podium.notices.outlet import AppriseOutlet, FileToldBook

__all__ = ["AppriseOutlet", "FileToldBook"]
