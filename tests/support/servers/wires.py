"""`Wires`: each node in a network namespace of its own, on one bridge, with cuts in one direction that drop packets.

The process that makes one is in a namespace of its own already (`unshare -Urn`). It has the bridge, so its clients reach all
nodes. A node that is cut off from a peer gets a permanent neighbour entry for it, with a MAC address that nobody has: what it
sends to the peer is lost on the bridge, what the peer sends arrives. No packet filter is needed in the kernel.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from types import TracebackType

from tests.support.servers.kafka_server import HANG_S

HUB = "hub"
NETWORK = "10.77.0"
HUB_ADDRESS = 254
NOBODY = "02:00:00:00:00:fe"
UNSHARE = ("unshare", "--user", "--map-root-user", "--net")
DIRECTIONS = ("both", "in", "out")


def why_not() -> str | None:
    """Why this machine allows no namespaces and bridges; None if it does."""
    try:
        subprocess.run(["nsenter", "--version"], capture_output=True, check=True, timeout=HANG_S)
        made = subprocess.run(
            [*UNSHARE, "ip", "link", "add", HUB, "type", "bridge"], capture_output=True, text=True, check=False, timeout=HANG_S
        )
    except (OSError, subprocess.CalledProcessError) as missing:
        return f"unshare, nsenter and ip are needed: {missing}"
    return None if made.returncode == 0 else f"unshare or ip link is not permitted: {made.stderr.strip()}"


class Wires:
    """The namespaces of these nodes. `with` makes and ends them."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self._nodes = nodes
        self._holders: dict[int, subprocess.Popen[bytes]] = {}
        self._cuts: set[tuple[int, int]] = set()

    def address(self, node: int) -> str:
        return f"{NETWORK}.{node}"

    def enter(self, node: int) -> tuple[str, ...]:
        """The beginning of a command that runs in a node's namespace."""
        return ("nsenter", "--target", str(self._holders[node].pid), "--net", "--")

    def cut(self, node: int, peers: Iterable[int], direction: str = "both") -> None:
        """Drop what peers send to a node ("in"), what it sends to them ("out"), or both."""
        for peer in peers:
            if direction in ("both", "out"):
                self._cut(node, peer)
            if direction in ("both", "in"):
                self._cut(peer, node)

    def _cut(self, sender: int, receiver: int) -> None:
        entry = (self.address(receiver), "lladdr", NOBODY, "dev", f"node{sender}", "nud", "permanent")
        _ip("neigh", "replace", *entry, inside=self.enter(sender))
        self._cuts.add((sender, receiver))

    def heal(self) -> None:
        """End all cuts."""
        for sender, receiver in self._cuts:
            _ip("neigh", "del", self.address(receiver), "dev", f"node{sender}", inside=self.enter(sender))
        self._cuts.clear()

    def __enter__(self) -> Wires:
        _ip("link", "set", "lo", "up")
        _ip("link", "add", HUB, "type", "bridge")
        _ip("addr", "add", f"{NETWORK}.{HUB_ADDRESS}/24", "dev", HUB)
        _ip("link", "set", HUB, "up")
        for node in self._nodes:
            # It holds the namespace, says so, and ends with its standard input: with this process, however that ends.
            holding = ["unshare", "--net", "sh", "-c", "echo && exec cat"]
            holder = subprocess.Popen(holding, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._holders[node] = holder
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"\n", "unshare --net failed"
            name, port = f"node{node}", f"{HUB}{node}"
            _ip("link", "add", port, "type", "veth", "peer", "name", name, "netns", str(holder.pid))
            _ip("link", "set", port, "master", HUB, "up")
            _ip("addr", "add", f"{self.address(node)}/24", "dev", name, inside=self.enter(node))
            _ip("link", "set", name, "up", inside=self.enter(node))
            _ip("link", "set", "lo", "up", inside=self.enter(node))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for holder in self._holders.values():
            holder.communicate()


def _ip(*words: str, inside: Sequence[str] = ()) -> None:
    done = subprocess.run([*inside, "ip", *words], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr.strip()}"
