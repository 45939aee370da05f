"""Node processes in network namespaces of their own, whose traffic can be cut in one direction or in both.

    def body(network: CutNetwork) -> None:
        node = network.add(1)                       # 10.77.0.1
        process = node.popen([...])
        node.cut(incoming=True, outgoing=True)
        node.inside(lambda: ...)                    # runs in a thread of this namespace
        node.heal()

    in_own_network(body)

A bridge connects all of them. `in_own_network` runs the test in a thread with a network namespace of its own: nothing of the
machine's network changes, and the kernel removes all of it with the last process. A cut is a queue without
room, which loses every packet. Needs root, `ip`, `tc` and `nsenter`: `why_unavailable` says what is missing.
"""

import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.support.servers.keeping import keep

R = TypeVar("R")
_CLONE_NEWNET = 0x40000000
_LOSES_ALL = ("pfifo", "limit", "0")
_LIBC = ctypes.CDLL(None, use_errno=True)


def why_unavailable() -> str | None:
    """Why no namespaces can be made here; None if they can."""
    for tool in ("ip", "tc", "nsenter", "unshare"):
        if shutil.which(tool) is None:
            return f"there is no `{tool}`"
    made = subprocess.run(
        ["unshare", "-n", "sh", "-c", "ip link set lo up && tc qdisc add dev lo root pfifo limit 0"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if made.returncode == 0 else f"network namespaces cannot be made: {made.stderr.strip()}"


def _in_thread(work: Callable[[], R]) -> R:
    """The result of `work`, run in a new thread: a network namespace belongs to a thread."""
    results: list[R] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _run(*command: object) -> None:
    subprocess.run([str(each) for each in command], check=True, capture_output=True)


class CutNode:
    """One namespace with one address. A process without work keeps it while no other runs in it."""

    def __init__(self, number: int) -> None:
        self.address = f"10.77.0.{number}"
        self._outer = f"node{number}"
        self._holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        self._await_namespace()
        pid = self._holder.pid
        _run("ip", "link", "add", self._outer, "type", "veth", "peer", "name", "eth0", "netns", pid)
        _run("ip", "link", "set", self._outer, "master", "bridge", "up")
        for command in (f"addr add {self.address}/24 dev eth0", "link set eth0 up", "link set lo up"):
            _run(*self._prefix(), "ip", *command.split())

    def _await_namespace(self) -> None:
        mine = os.readlink("/proc/thread-self/ns/net")
        while os.readlink(f"/proc/{self._holder.pid}/ns/net") == mine:
            assert self._holder.poll() is None, "unshare has ended"

    def _prefix(self) -> list[str]:
        return ["nsenter", "-t", str(self._holder.pid), "-n"]

    def popen(self, command: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([*self._prefix(), *command], **options)

    def inside(self, work: Callable[[], R]) -> R:
        """The result of `work`, run in this namespace: it reaches this node when nothing else does."""

        def run() -> R:
            with open(f"/proc/{self._holder.pid}/ns/net") as namespace:
                _check(_LIBC.setns(namespace.fileno(), _CLONE_NEWNET))
            return work()

        return _in_thread(run)

    def cut(self, *, incoming: bool, outgoing: bool) -> None:
        """Lose all packets from or to this node."""
        if incoming:
            _run("tc", "qdisc", "add", "dev", self._outer, "root", *_LOSES_ALL)
        if outgoing:
            _run(*self._prefix(), "tc", "qdisc", "add", "dev", "eth0", "root", *_LOSES_ALL)

    def heal(self) -> None:
        for prefix, device in (([], self._outer), (self._prefix(), "eth0")):
            command = [*prefix, "tc", "qdisc", "del", "dev", device, "root"]
            subprocess.run(command, check=False, capture_output=True)  # it fails where nothing is cut

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()


class CutNetwork:
    """The nodes of one test."""

    def __init__(self) -> None:
        self.nodes: dict[int, CutNode] = {}
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", "bridge", "type", "bridge")
        _run("ip", "addr", "add", "10.77.0.254/24", "dev", "bridge")
        _run("ip", "link", "set", "bridge", "up")

    def add(self, number: int) -> CutNode:
        self.nodes[number] = CutNode(number)
        return self.nodes[number]

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


def in_own_network(body: Callable[[CutNetwork], R]) -> R:
    """Run a test's body in a thread with a network of its own."""
    keep()

    def run() -> R:
        _check(_LIBC.unshare(_CLONE_NEWNET))
        network = CutNetwork()
        try:
            return body(network)
        finally:
            network.close()

    return _in_thread(run)
