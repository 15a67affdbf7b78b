"""Where people are told who look at nothing: chats, mailboxes and phones, by one URL each."""

from podium.notices.apprise_outlet import AppriseOutlet
from podium.notices.told_book import FileToldBook

__all__ = ["AppriseOutlet", "FileToldBook"]
