"""`CoordinatorFinder`: finds the coordinator of one group or transactional id (FindCoordinator), and again when it has moved.

A machine (`machine.py`). It asks only while the coordinator is wanted and not known, or cannot be connected to.

Requests go only to a coordinator whose connection is open: `connected` gives its node, or has it connected to (`Connect`).
While that takes long, the coordinator is looked for again, because it may have moved away from a node that is gone.

Version notes: v4: several keys in one request; v1: key types.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol

from ottla.client_core.machine import ANY_NODE, Channel, Connect, Connections, Request
from ottla.client_core.metadata import Metadata, Node
from ottla.env.backoff import Backoff
from ottla.errors import KafkaError, exception_of
from ottla.errors.codes import error_meaning
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest

_MANY_KEYS_SINCE_VERSION = 4


class CoordinatorKind(IntEnum):
    """The key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class BackoffSettings(Protocol):
    """The settings of retries; every client has them."""

    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...


def find_coordinator_request(kind: CoordinatorKind, key: str, version: int) -> FindCoordinatorRequest:
    """The request for one key, in the shape that `version` has."""
    if version >= _MANY_KEYS_SINCE_VERSION:
        return FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    return FindCoordinatorRequest(key=key, key_type=kind)


class CoordinatorFinder:
    """Knows the coordinator of one key, or looks for it."""

    def __init__(
        self,
        metadata: Metadata,
        kind: CoordinatorKind,
        key: str,
        settings: BackoffSettings,
        random_below: Callable[[int], int],
    ) -> None:
        self.error: KafkaError | None = None
        """The last error that no retry can heal, such as a missing permission; cleared by `want`."""
        self.retried_error: KafkaError | None = None
        """Why the coordinator is not known or not connected yet, while it is looked for."""
        self.connections: Connections | None = None
        """None: every node is connected."""
        self._metadata = metadata
        self._kind = kind
        self._key = key
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_below)
        self._node_id: int | None = None
        self._is_wanted = False
        self._is_in_flight = False
        self._not_before_ms = 0
        self._awaited: set[Channel] = set()
        """Channels to the coordinator that a request waits for."""
        self._connecting: set[tuple[int, Channel]] = set()
        self._unreachable: int | None = None
        """The coordinator that the last attempt to connect failed to reach."""

    def node(self) -> int | None:
        """The coordinator's node id; None if it is not known now. For a request that leaves now, ask `connected`."""
        return self._node_id

    @property
    def is_ready(self) -> bool:
        """Whether the coordinator is known, and no request waits until it is connected to."""
        return self._node_id is not None and not self._awaited

    def connected(self, channel: Channel) -> int | None:
        """The coordinator's node id, for a request that leaves now; None until it is known and connected to."""
        node = self._node_id
        if node is None:
            return None
        if self._is_open(node, channel):
            if node == self._unreachable:
                self._reached()
            return node
        self._awaited.add(channel)
        return None

    def want(self) -> None:
        """Look for the coordinator if it is not known."""
        self._is_wanted = True
        self.error = None

    def unwant(self) -> None:
        """No longer look for it."""
        self._is_wanted = False

    def lost(self, reason: str) -> None:
        """The known coordinator is gone or no longer the coordinator: look for it again."""
        if self._node_id is not None:
            self._metadata.refresh(f"the coordinator of {self._key} is looked for again: {reason}")
        self._set(None)

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        requests: list[Request] = [*self._connect(now_ms)]
        if self._is_due and now_ms >= self._not_before_ms:
            self._is_in_flight = True
            requests.append(self._request())
        return requests

    def _connect(self, now_ms: int) -> list[Connect]:
        node = self._node_id
        if node is None:
            return []
        self._awaited = {channel for channel in self._awaited if not self._is_open(node, channel)}
        new = sorted(channel for channel in self._awaited if (node, channel) not in self._connecting)
        if new:
            self._connecting.update((node, channel) for channel in new)
            self._not_before_ms = max(self._not_before_ms, now_ms + self._backoff.failed())
        return [Connect(node, channel) for channel in new]

    def _request(self) -> Request:
        def adapt(version: int) -> FindCoordinatorRequest:
            return find_coordinator_request(self._kind, self._key, version)

        return Request(FindCoordinatorRequest(), ANY_NODE, adapt=adapt)

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if isinstance(request, Connect):
            self._opened(request)
            return
        self._is_in_flight = False
        found = response
        if version >= _MANY_KEYS_SINCE_VERSION:
            found = next((each for each in response.coordinators if each.key == self._key), None)
        if found is None:
            self._retry(exception_of(-1, f"a broker did not name the coordinator of {self._key}"), now_ms)
        elif found.error_code:
            kind = self._kind.name.lower()
            text = f"the coordinator of {kind} {self._key}: {found.error_message or error_meaning(found.error_code)}"
            self._refused(exception_of(found.error_code, text), now_ms)
        else:
            self._found(Node(found.node_id, found.host, found.port), now_ms)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        if not isinstance(request, Connect):
            self._is_in_flight = False
            self._refused(error, now_ms)
            return
        self._connecting.discard((request.node, request.channel))
        if request.node == self._node_id:
            self._unreachable = request.node
            self.lost(str(error))
            self._refused(error, now_ms)

    def next_deadline_ms(self) -> int | None:
        if any((self._node_id, channel) not in self._connecting for channel in self._awaited):
            return 0
        return self._not_before_ms if self._is_due else None

    @property
    def _is_due(self) -> bool:
        return self._is_wanted and not self.is_ready and not self._is_in_flight and self.error is None

    def _is_open(self, node: int, channel: Channel) -> bool:
        return self.connections is None or self.connections.is_open(node, channel)

    def _set(self, node_id: int | None) -> None:
        if node_id != self._node_id:
            self._node_id = node_id
            self._awaited.clear()

    def _found(self, node: Node, now_ms: int) -> None:
        self._metadata.learn_node(node)
        self._set(node.id)
        if self._awaited:
            self._not_before_ms = now_ms + self._backoff.failed()
        elif node.id != self._unreachable:
            self._reached()

    def _opened(self, request: Connect) -> None:
        self._connecting.discard((request.node, request.channel))
        if request.node == self._node_id:
            self._awaited.discard(request.channel)
            self._reached()

    def _reached(self) -> None:
        self._unreachable = None
        self._backoff.succeeded()
        self.retried_error = None

    def _refused(self, error: KafkaError, now_ms: int) -> None:
        if error.is_retriable:
            self._retry(error, now_ms)
        else:
            self.error = error

    def _retry(self, error: KafkaError, now_ms: int) -> None:
        self.retried_error = error
        self._not_before_ms = now_ms + self._backoff.failed()
