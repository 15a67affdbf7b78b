"""Words for people: events, approvals and messages as every door tells them. No terminal and no page here."""
