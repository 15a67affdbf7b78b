"""Ways out of the house: e-mail over SMTP, text messages over an HTTP gateway.

`send_mail` and `send_sms` raise `ToolBroke` when the message certainly was not sent, and `MaybeSent`
when nobody can know.
"""

from .mail import Attachment, Mail, SentMail, message_id_of, send_mail
from .maybe import MaybeSent
from .sms import SentSms, Sms, send_sms

__all__ = [
    "Attachment",
    "Mail",
    "MaybeSent",
    "SentMail",
    "SentSms",
    "Sms",
    "message_id_of",
    "send_mail",
    "send_sms",
]
