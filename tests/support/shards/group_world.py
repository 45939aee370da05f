"""Group members of the client, without sockets, against Ottla's own coordinator shard, in virtual time.

Each client has its real machines (metadata, coordinator finder, membership). Requests on one channel are served in order, like
on a connection, and a parked one holds up those behind it. The owner of each membership is simulated: it polls, and handles
events as a consumer does. The test moves the time, changes topics, breaks connections and spoils answers.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from tests.support.shards.consumer_harness import ConsumerHarness
from tests.support.shards.shard_harness import Asked

from ottla.client_core.coordinators import CoordinatorFinder, CoordinatorKind
from ottla.client_core.group.membership import Assign, Event, Failed, Left, Lost, Membership, Revoke
from ottla.client_core.machine import Channel, Connect, Machine, Request
from ottla.client_core.metadata import Metadata
from ottla.coordinator.contract import Caller
from ottla.coordinator.groups.classic.answers import NotAnswered
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors import KafkaError, NetworkError, exception_of
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

LATENCY_MS = 2
SETUP_TIMEOUT_MS = 10_000
POLL_MS = 200
BROKERS = (1, 2, 3)
VERSIONS = {
    FindCoordinatorRequest: 6,
    MetadataRequest: 13,
    JoinGroupRequest: 9,
    SyncGroupRequest: 5,
    HeartbeatRequest: 4,
    LeaveGroupRequest: 5,
    ConsumerGroupHeartbeatRequest: 1,
}


@dataclass
class ClientSettings:
    """The settings that a membership and the machines around it read."""

    group_id: str | None = "g"
    group_instance_id: str | None = None
    client_rack: str = ""
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 30_000
    request_timeout_ms: int = 5_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    exclude_internal_topics: bool = True
    group_remote_assignor: str | None = None
    metadata_max_age_ms: int = 5_000
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    metadata_recovery_strategy: str = "rebootstrap"


class Connection:
    """One channel of a client to one node: requests are served in order."""

    def __init__(self) -> None:
        self.queue: deque[tuple[Machine, Request]] = deque()
        self.is_serving = False
        self.is_open = False


@dataclass
class GroupClient:
    """One client and its simulated owner."""

    name: str
    settings: ClientSettings
    metadata: Metadata
    finder: CoordinatorFinder
    member: Membership
    is_polling: bool = True
    listener_ms: int = 0
    """How long the owner takes for a `Revoke` or an `Assign`."""
    events: list[Event] = field(default_factory=list)
    owned: frozenset[TopicPartition] = frozenset()
    """What the owner has by the events that it got."""
    connections: dict[tuple[int, Channel], Connection] = field(default_factory=dict)
    sent: list[Request] = field(default_factory=list)

    def is_open(self, node_id: int, channel: Channel = Channel.DATA) -> bool:
        connection = self.connections.get((node_id, channel))
        return connection is not None and connection.is_open

    @property
    def machines(self) -> list[Machine]:
        return [self.metadata, self.finder, self.member]

    @property
    def joins_out(self) -> int:
        waiting = [request for each in self.connections.values() for _, request in each.queue]
        return sum(isinstance(request.message, JoinGroupRequest) for request in waiting)

    def count(self, kind: type) -> int:
        return sum(isinstance(event, kind) for event in self.events)

    def messages(self, kind: type) -> list[Any]:
        """The requests of one API that the client has sent."""
        return [request.message for request in self.sent if isinstance(request.message, kind)]


class GroupWorld:
    """Clients, a coordinator and time."""

    def __init__(self, topics: dict[str, int] | None = None, seed: int = 0, settings: GroupSettings | None = None) -> None:
        self.random = random.Random(seed)
        settings = settings or GroupSettings(
            group_initial_rebalance_delay_ms=100,
            group_consumer_assignment_interval_ms=0,
            group_consumer_heartbeat_interval_ms=1_000,
            group_consumer_min_heartbeat_interval_ms=1_000,
            group_consumer_session_timeout_ms=10_000,
            group_consumer_min_session_timeout_ms=1_000,
        )
        self.harness = ConsumerHarness(topics if topics is not None else {"t": 4}, settings)
        self.coordinator = 1
        self.racks: dict[int, str] = {}
        self.unreachable: set[int] = set()
        """Nodes to which attempts to connect fail, after `SETUP_TIMEOUT_MS`."""
        self.clients: list[GroupClient] = []
        self.spoil: Callable[[GroupClient, Request, Any], Any] = lambda client, request, response: response
        """Changes an answer on its way; an exception fails the request instead."""
        self.is_exclusive = True
        """Check that no partition has two owners: true as long as no member is evicted without knowing."""
        self._later: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._parked: list[tuple[Asked, Callable[[Any], None]]] = []

    @property
    def now_ms(self) -> int:
        return self.harness.now_ms

    def add(self, make: Callable[[ClientSettings, Metadata, CoordinatorFinder], Membership], **settings: Any) -> GroupClient:
        """A new client; `make` builds its membership."""
        known = ClientSettings(**settings)
        metadata = Metadata(known, self.random.randrange)
        finder = CoordinatorFinder(metadata, CoordinatorKind.GROUP, known.group_id or "", known, self.random.randrange)
        client = GroupClient(f"c{len(self.clients)}", known, metadata, finder, make(known, metadata, finder))
        finder.connections = client
        self.clients.append(client)
        self._at(0, lambda: self._poll(client))
        return client

    # -- time

    def _at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._later, (self.now_ms + delay_ms, self._count, action))

    def _next_ms(self) -> int | None:
        deadlines = [machine.next_deadline_ms() for client in self.clients for machine in client.machines]
        deadlines += [self.harness.shard.next_deadline_ms, self._later[0][0] if self._later else None]
        return min((each for each in deadlines if each is not None), default=None)

    def run_for(self, time_ms: int) -> None:
        until_ms = self.now_ms + time_ms
        self.run_until(lambda: False, time_ms, must=False)
        assert self.now_ms == until_ms

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 120_000, *, must: bool = True) -> None:
        """Let time pass until the condition holds, which must happen within the limit."""
        until_ms = self.now_ms + limit_ms
        rounds = 0
        while not condition():
            next_ms = self._next_ms()
            if next_ms is None or next_ms > until_ms:
                self.harness.advance(until_ms - self.now_ms)
                self._serve_parked()
                self._step_all()
                assert not must or condition(), self.describe()
                return
            before_ms = self.now_ms
            self.harness.advance(max(0, next_ms - self.now_ms))
            rounds = rounds + 1 if self.now_ms == before_ms else 0
            assert rounds < 1_000, f"a machine is due all the time: {self.describe()}"
            self._serve_parked()
            while self._later and self._later[0][0] <= self.now_ms:
                heappop(self._later)[2]()
            self._step_all()

    def run_until_stable(self, limit_ms: int = 120_000) -> None:
        self.run_until(lambda: self.is_settled, limit_ms)

    @property
    def is_settled(self) -> bool:
        """All subscribed members are stable, and all partitions of their topics have one owner each, fairly shared."""
        members = [client.member for client in self.clients if client.member.subscribed_topics]
        if not members or not all(member.is_stable for member in members):
            return False
        wanted = {
            TopicPartition(topic, index)
            for member in members
            for topic in member.subscribed_topics
            for index in range(self.harness.topics.partition_count(topic))
        }
        owners = Counter(partition for member in members for partition in member.assigned)
        counts = [len(member.assigned) for member in members]
        are_alike = len({member.subscribed_topics for member in members}) == len(wanted_topics(members)) == 1
        is_fair = not are_alike or max(counts) - min(counts) <= 1
        return set(owners) == wanted and set(owners.values()) <= {1} and is_fair

    def describe(self) -> str:
        lines = [f"at {self.now_ms} ms, coordinator {self.coordinator}"]
        for client in self.clients:
            member = client.member
            lines.append(
                f"{client.name}: {member.member_id} in {member.generation_or_epoch}, stable {member.is_stable}, has "
                f"{sorted(map(str, member.assigned))}, coordinator {client.finder.node()}, last events {client.events[-4:]}, "
                f"last sent {[str(each) for each in client.sent[-4:]]}"
            )
        return "\n".join(lines)

    # -- clients

    def _step_all(self) -> None:
        for client in self.clients:
            for _ in range(5):
                requests = [(machine, request) for machine in client.machines for request in machine.step(self.now_ms)]
                for machine, request in requests:
                    self._send(client, machine, request)
                if not requests:
                    break
            self._handle_events(client)
        self.check()

    def check(self) -> None:
        """What must hold at every moment."""
        owners: Counter[TopicPartition] = Counter()
        for client in self.clients:
            assert client.joins_out <= 1, f"{client.name} has two JoinGroups out"
            assert client.member.assigned == client.owned, f"{client.name}: assigned changed without an event"
            owners.update(client.member.assigned)
        if self.is_exclusive:
            twice = [partition for partition, count in owners.items() if count > 1]
            assert not twice, f"{twice} have two owners\n{self.describe()}"

    def _poll(self, client: GroupClient) -> None:
        if client.is_polling:
            client.member.polled(self.now_ms)
        self._at(POLL_MS, lambda: self._poll(client))

    def _handle_events(self, client: GroupClient) -> None:
        for event in client.member.take_events():
            client.events.append(event)
            if isinstance(event, Revoke):
                assert event.partitions <= client.owned, "a Revoke of what the owner does not have"
                self._at(client.listener_ms, lambda event=event: self._revoked(client, event))  # type: ignore[misc]
            elif isinstance(event, Assign):
                assert event.added == event.partitions - client.owned
                assert event.partitions >= client.owned, "partitions vanished without a Revoke"
                client.owned = event.partitions
                self._at(client.listener_ms, lambda event=event: self._taken(client, event))  # type: ignore[misc]
            elif isinstance(event, Lost):
                assert event.partitions == client.owned
                client.owned = frozenset()
            else:
                assert isinstance(event, Left | Failed)

    def _revoked(self, client: GroupClient, event: Revoke) -> None:
        if [each for each in client.events if isinstance(each, Revoke | Assign | Lost)][-1] is event:
            client.member.revoked(self.now_ms)
            client.owned -= event.partitions

    def _taken(self, client: GroupClient, event: Assign) -> None:
        if [each for each in client.events if isinstance(each, Revoke | Assign | Lost)][-1] is event:
            client.member.assignment_taken(self.now_ms)

    # -- the network

    def _send(self, client: GroupClient, machine: Machine, request: Request) -> None:
        if request.adapt is not None:
            request.message = request.adapt(VERSIONS[type(request.message)])
        client.sent.append(request)
        connection = client.connections.setdefault((request.node, request.channel), Connection())
        if isinstance(request, Connect):
            assert not connection.is_open
            delay_ms = SETUP_TIMEOUT_MS if request.node in self.unreachable else LATENCY_MS
            self._at(delay_ms, lambda: self._connected(connection, machine, request))
            return
        connection.is_open = True
        connection.queue.append((machine, request))
        timeout_ms = request.timeout_ms or client.settings.request_timeout_ms
        self._at(timeout_ms, lambda: self._time_out(client, connection, request))
        self._serve(client, connection)

    def _connected(self, connection: Connection, machine: Machine, request: Connect) -> None:
        connection.is_open = request.node not in self.unreachable
        if connection.is_open:
            machine.answered(request, None, 0, self.now_ms)
        else:
            machine.failed(request, NetworkError("no connection in time"), self.now_ms)

    def _serve(self, client: GroupClient, connection: Connection) -> None:
        if connection.is_serving or not connection.queue:
            return
        connection.is_serving = True
        request = connection.queue[0][1]
        self._at(LATENCY_MS, lambda: self._arrive(client, connection, request))

    def _arrive(self, client: GroupClient, connection: Connection, request: Request) -> None:
        if connection.queue and connection.queue[0][1] is request:
            self._answer(client, request, lambda response: self._reply(client, connection, request, response))

    def _reply(self, client: GroupClient, connection: Connection, request: Request, response: Any) -> None:
        self._at(LATENCY_MS, lambda: self._deliver(client, connection, request, response))

    def _deliver(self, client: GroupClient, connection: Connection, request: Request, response: Any) -> None:
        if not connection.queue or connection.queue[0][1] is not request:
            return  # the connection was lost
        machine = connection.queue.popleft()[0]
        connection.is_serving = False
        try:
            response = self.spoil(client, request, response)
        except KafkaError as error:
            machine.failed(request, error, self.now_ms)
        else:
            machine.answered(request, response, VERSIONS[type(request.message)], self.now_ms)
        self._serve(client, connection)

    def _time_out(self, client: GroupClient, connection: Connection, request: Request) -> None:
        if any(waiting is request for _, waiting in connection.queue):
            self._break(connection, request)

    def disconnect(self, client: GroupClient) -> None:
        """Break all connections of a client."""
        for connection in client.connections.values():
            self._break(connection)

    def _break(self, connection: Connection, timed_out: Request | None = None) -> None:
        waiting, connection.queue, connection.is_serving = connection.queue, deque(), False
        connection.is_open = False
        for machine, request in waiting:
            code = ErrorCode.REQUEST_TIMED_OUT if request is timed_out else ErrorCode.NETWORK_EXCEPTION
            machine.failed(request, exception_of(code) if request is timed_out else NetworkError(), self.now_ms)

    # -- the brokers

    def move_coordinator(self) -> None:
        """Another broker becomes coordinator: it loads the log, and the old one refuses what is parked."""
        lost = KafkaError(ErrorCode.NOT_COORDINATOR, "the coordinator has moved")
        self.harness.submit(_effects(self.harness.shard.refuse_waiting(lost)))
        self._serve_parked()
        now_ms, uuids = self.now_ms, self.harness._uuids
        self.harness = self.harness.reloaded()
        self.harness.now_ms, self.harness._uuids = now_ms, uuids + 1_000
        self.harness.submit(self.harness.shard.loaded(self.harness.now))
        self.coordinator = self.coordinator % len(BROKERS) + 1

    def _answer(self, client: GroupClient, request: Request, reply: Callable[[Any], None]) -> None:
        message = request.message
        if isinstance(message, MetadataRequest):
            reply(self._metadata_response(message))
        elif isinstance(message, FindCoordinatorRequest):
            found = [Coordinator(key=key, node_id=self.coordinator, host="h", port=1) for key in message.coordinator_keys]
            reply(FindCoordinatorResponse(coordinators=found))
        elif request.node != self.coordinator:
            reply(_refusal(message, KafkaError(ErrorCode.NOT_COORDINATOR, "not here")))
        else:
            asked = self._ask(client, message)
            self._parked.append((asked, lambda answer: reply(_as_response(message, answer))))
            self._serve_parked()

    def _ask(self, client: GroupClient, message: Any) -> Asked:
        caller = Caller(client.name, "/10.0.0.1", VERSIONS[type(message)])
        shard, now = self.harness.shard, self.harness.now
        decide = {
            JoinGroupRequest: shard.join,
            SyncGroupRequest: shard.sync,
            HeartbeatRequest: shard.heartbeat,
            LeaveGroupRequest: shard.leave,
            ConsumerGroupHeartbeatRequest: shard.consumer.heartbeat,
        }[type(message)]
        return self.harness.ask(type(message).__name__, lambda reply: decide(message, caller, reply, now))  # type: ignore[operator]

    def _serve_parked(self) -> None:
        done = [entry for entry in self._parked if entry[0].is_answered]
        self._parked = [entry for entry in self._parked if not entry[0].is_answered]
        for asked, reply in done:
            reply(asked.answer)

    def _metadata_response(self, request: MetadataRequest) -> MetadataResponse:
        topics = self.harness.topics
        names = list(topics.names()) if request.topics is None else [each.name or "" for each in request.topics]
        found = []
        for name in names:
            known = topics.id_of(name)
            if known is None:
                found.append(MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            partitions = [
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=BROKERS[index % len(BROKERS)],
                    leader_epoch=0,
                    replica_nodes=[BROKERS[index % len(BROKERS)]],
                )
                for index in range(topics.partition_count(name))
            ]
            is_internal = name.startswith("__")
            found.append(MetadataResponseTopic(name=name, topic_id=known, partitions=partitions, is_internal=is_internal))
        brokers = [MetadataResponseBroker(node_id=each, host="h", port=each, rack=self.racks.get(each)) for each in BROKERS]
        return MetadataResponse(brokers=brokers, topics=found, cluster_id="c", controller_id=1)


def wanted_topics(members: list[Membership]) -> set[str]:
    return {topic for member in members for topic in member.subscribed_topics}


def _effects(answers: Any) -> Any:
    from ottla.coordinator.contract import Effects

    return Effects(answers=list(answers))


def _as_response(message: Any, answer: Any) -> Any:
    return _refusal(message, answer) if isinstance(answer, KafkaError) else answer


def _refusal(message: Any, error: KafkaError) -> Any:
    """What the broker's handlers make of an error."""
    if isinstance(message, JoinGroupRequest):
        member_id = error.member_id if isinstance(error, NotAnswered) else message.member_id
        return JoinGroupResponse(error_code=error.code, member_id=member_id, protocol_name=None)
    if isinstance(message, ConsumerGroupHeartbeatRequest):
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=str(error))
    kinds = {SyncGroupRequest: SyncGroupResponse, HeartbeatRequest: HeartbeatResponse, LeaveGroupRequest: LeaveGroupResponse}
    return kinds[type(message)](error_code=error.code)
