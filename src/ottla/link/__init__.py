"""One outbound connection to a node: TLS, handshake, version choice, login, requests in flight.

link = await Link.connect(network, "localhost", 9092)
response = await link.request(MetadataRequest(topics=None), timeout_ms=30_000)
link.close()
"""

from ottla.link.counters import LinkCounters
from ottla.link.errors import (
    AuthenticationFailed,
    ConnectFailed,
    EncryptionFailed,
    LinkEnded,
    LinkError,
    NoCommonVersion,
    PeerFault,
    RequestTimedOut,
)
from ottla.link.link import Link, LinkOptions
from ottla.link.security import LinkSecurity, SaslOptions
from ottla.link.versions import PeerVersions

__all__ = [
    "AuthenticationFailed",
    "ConnectFailed",
    "EncryptionFailed",
    "Link",
    "LinkCounters",
    "LinkEnded",
    "LinkError",
    "LinkOptions",
    "LinkSecurity",
    "NoCommonVersion",
    "PeerFault",
    "PeerVersions",
    "RequestTimedOut",
    "SaslOptions",
]
