"""The typed API: terminals of duets for other processes, by gRPC over a private socket or TLS on both ends.

Needs the extra `duet`. Client and server come from one `podium.proto`; both fit the port `Terminals`.
"""

import os

# gRPC reads this when it is first imported. Else it complains on stderr of every process that Podium starts; those are
# executed at once, and need nothing of gRPC.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from podium.rpc.client import RemoteTerminals, reach, reach_tls
from podium.rpc.connection import Certificates, Greeting
from podium.rpc.server import serve, serve_tls

__all__ = [
    "Certificates",
    "Greeting",
    "RemoteTerminals",
    "reach",
    "reach_tls",
    "serve",
    "serve_tls",
]
