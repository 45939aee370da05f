"""`ClusterNode`: one node of a test's cluster, and what a test can do to it. `Cut` and `Pause` end with their `with` block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ottla.testing.arguments import check_kind
from ottla.testing.cluster.cuts import BOTH, CLIENTS, DIRECTIONS, CutRule
from ottla.testing.cluster.engine import START_S, ClusterEngine
from ottla.testing.errors import NotRunning
from ottla.testing.faults import Faults
from ottla.testing.settings import HOST

if TYPE_CHECKING:
    from ottla.testing.faults import Faults

__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us


class ClusterNode:
    """A node: a process that is broker and controller. It stays the same object when the node is started again."""

    def __init__(self, engine: ClusterEngine, node_id: int) -> None:
        self._engine = engine
        self.node_id = node_id

    def __repr__(self) -> str:
        state = self._engine.nodes.get(self.node_id)
        return f"<ClusterNode {self.node_id}: {'it was not started' if state is None else state.condition}>"

    # Address and state

    @property
    def bootstrap_servers(self) -> str:
        """The node's address for clients, as HOST:PORT. Stays the same after a restart."""
        return f"{HOST}:{self.port}"

    @property
    def host(self) -> str:
        """The host for clients."""
        return HOST

    @property
    def port(self) -> int:
        """The port for clients."""
        if not self._engine.nodes:
            raise NotRunning("the cluster was not started: start() it, or use it as a context manager")
        return self._engine.nodes[self.node_id].ports.clients

    @property
    def data(self) -> Path:
        """The folder with the node's data."""
        return Path(self._engine.node(self.node_id).settings["log.dirs"])

    @property
    def pid(self) -> int:
        """The id of the node's process."""
        state = self._engine.node(self.node_id)
        if state.host is None:
            raise NotRunning(f"node {self.node_id} has no process: {state.ended}")
        return state.host.pid

    @property
    def is_running(self) -> bool:
        """Whether the process runs; a paused one does."""
        return self.node_id in self._engine.nodes and self._engine.nodes[self.node_id].is_running

    @property
    def is_paused(self) -> bool:
        """Whether `pause` has stopped the process, and nothing has let it go on."""
        return self.node_id in self._engine.nodes and self._engine.nodes[self.node_id].is_paused

    @property
    def log_lines(self) -> list[str]:
        """The last lines that it has logged, also before a restart."""
        return list(self._engine.nodes[self.node_id].log_lines) if self.node_id in self._engine.nodes else []

    # What a test does to it

    def start(self, timeout: float = START_S) -> None:
        """Start it again. It needs a majority of the nodes: `Cluster.start` starts several at once."""
        self._engine.run(self._engine.start_node(self.node_id, timeout))

    def stop(self) -> None:
        """Shut it down cleanly: it hands over what it leads first."""
        self._engine.run(self._engine.stop_node(self.node_id))

    def restart(self, timeout: float = START_S) -> None:
        """Shut it down cleanly and start it again."""
        self._engine.run(self._engine.restart_node(self.node_id, timeout))

    def kill(self) -> None:
        """`kill -9`. The others notice when its session is over."""
        self._engine.run(self._engine.kill_node(self.node_id))

    def pause(self) -> Pause:
        """Stop the process where it is (SIGSTOP), as a long garbage collection or a stalled disk would.

        Its connections stay open. Returns a `Pause`: `resume()` ends it, and so does the end of a `with` block.
        """
        self._engine.run(self._engine.pause_node(self.node_id))
        return Pause(self)

    def resume(self) -> None:
        """Let it go on (SIGCONT). Nothing happens if it is not paused."""
        self._engine.run(self._engine.resume_node(self.node_id))

    def cut_off(
        self,
        *,
        from_nodes: Sequence[int | ClusterNode] | None = None,
        from_clients: bool | None = None,
        direction: str = BOTH,
    ) -> Cut:
        """`Cluster.cut_off` of this node."""
        rule = cut_rule(list(self._engine.nodes), self, from_nodes, from_clients, direction)
        return Cut(self._engine, self._engine.run(self._engine.cut(rule)), rule)

    @cached_property
    def faults(self) -> Faults:
        """Fault injection on this node, as on a single broker."""
        engine, node_id = self._engine, self.node_id

        def tell(name: str, /, **values: Any) -> Any:
            return engine.run(engine.tell(node_id, name, values))

        return Faults(tell, lambda: engine.run(engine.topics()))


class Pause:
    """A paused node, until `resume`."""

    def __init__(self, node: ClusterNode) -> None:
        self._node = node

    def __repr__(self) -> str:
        return f"<Pause of {self._node!r}>"

    def resume(self) -> None:
        """Let the node go on. Nothing happens if it is not paused."""
        self._node.resume()

    def __enter__(self) -> ClusterNode:
        return self._node

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.resume()


class Cut:
    """A node that is cut off, until `heal`."""

    def __init__(self, engine: ClusterEngine, number: int, rule: CutRule) -> None:
        self._engine = engine
        self._number = number
        self._rule = rule

    def __repr__(self) -> str:
        return f"<Cut of node {self._rule.node} from {', '.join(self._rule.peers)}, direction {self._rule.direction}>"

    def heal(self) -> None:
        """Let traffic through again: first what was held back. Healing twice is harmless."""
        self._engine.run(self._engine.heal(self._number))

    def __enter__(self) -> Cut:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.heal()


def cut_rule(
    known: Sequence[int],
    node: int | ClusterNode,
    from_nodes: Sequence[int | ClusterNode] | None,
    from_clients: bool | None,
    direction: str,
) -> CutRule:
    """The rule for the arguments of `cut_off`: everything if nothing is named, else only what is named."""
    here = _id(known, node)
    if direction not in DIRECTIONS:
        raise ValueError(f"direction={direction!r}: choose from {', '.join(DIRECTIONS)}")
    if isinstance(from_nodes, int | ClusterNode):
        raise TypeError(f"from_nodes={from_nodes!r}: give a list of nodes or node ids")
    is_all = from_nodes is None and from_clients is None
    others = [each for each in known if each != here] if is_all or (from_nodes is None and from_clients is False) else []
    others += [_id(known, each) for each in from_nodes or ()]
    if here in others:
        raise ValueError(f"node {here} cannot be cut off from itself")
    peers = [str(each) for each in dict.fromkeys(others)] + ([CLIENTS] if is_all or from_clients else [])
    if not peers:
        raise ValueError("cut_off() names neither nodes nor clients to cut the node off from: leave both out for all")
    return CutRule(here, tuple(peers), direction)


def _id(known: Sequence[int], node: int | ClusterNode) -> int:
    node_id = node.node_id if isinstance(node, ClusterNode) else node
    check_kind("node", node_id, int, "a node or its id")
    if node_id not in known:
        raise ValueError(f"the cluster has no node {node_id}; it has {', '.join(map(str, known)) or 'none'}")
    return node_id
