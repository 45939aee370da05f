"""One outbound connection to a node: handshake, version choice, requests in flight.

link = await Link.connect(network, "localhost", 9092)
response = await link.request(MetadataRequest(topics=None), timeout_ms=30_000)
link.close()
"""

from ottla.link.backoff import backoff_ms
from ottla.link.errors import ConnectFailed, LinkEnded, LinkError, NoCommonVersion, PeerFault, RequestTimedOut
from ottla.link.link import Link, LinkOptions
from ottla.link.versions import PeerVersions

__all__ = [
    "ConnectFailed",
    "Link",
    "LinkEnded",
    "LinkError",
    "LinkOptions",
    "NoCommonVersion",
    "PeerFault",
    "PeerVersions",
    "RequestTimedOut",
    "backoff_ms",
]
