"""One outbound connection to a node: handshake, version choice, requests in flight."""
