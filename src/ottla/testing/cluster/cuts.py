"""Which traffic between nodes and clients is cut. Pure: the rules of the test in, what each node must hold back out.

A connection between two nodes is cut by the node that has opened it, which knows both ends; one of a client by the node that
has accepted it. So a node is given what it must hold back by peer: the id of another node, or `CLIENTS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

CLIENTS: Final = "clients"
BOTH, IN, OUT = "both", "in", "out"
DIRECTIONS: Final = (BOTH, IN, OUT)


class CutRule(NamedTuple):
    """Node `node` is cut off from `peers`. IN: nothing reaches it; OUT: nothing leaves it."""

    node: int
    peers: tuple[str, ...]
    """Ids of other nodes as text, and `CLIENTS`."""
    direction: str

    def paths(self) -> set[tuple[str, str]]:
        """The (sender, receiver) pairs that it cuts."""
        here = str(self.node)
        reaching = {(peer, here) for peer in self.peers} if self.direction != OUT else set()
        leaving = {(here, peer) for peer in self.peers} if self.direction != IN else set()
        return reaching | leaving


Blocked = dict[str, tuple[bool, bool]]
"""Peer → whether nothing may be received from it, whether nothing may be sent to it."""


def blocked_at(node: int, rules: Iterable[CutRule]) -> Blocked:
    """What `node` must hold back."""
    paths = {path for rule in rules for path in rule.paths()}
    here = str(node)
    peers = {peer for path in paths if here in path for peer in path if peer != here}
    return {peer: ((peer, here) in paths, (here, peer) in paths) for peer in sorted(peers)}
