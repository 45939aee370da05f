"""The sender against a model of a cluster: order, no loss, no double, memory, whatever answers and disconnects come."""

from collections import deque
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.support.producers.model_cluster import NODES, TOPIC, InFlight, ModelCluster
from tests.support.producers.settings import small_settings

from ottla.client_core.machine import Channel, Connect
from ottla.client_core.metadata import Metadata
from ottla.client_core.producer.accumulator import Accumulator
from ottla.client_core.producer.idempotence import Idempotence
from ottla.client_core.producer.sender import Sender
from ottla.errors import KafkaError, NetworkError, OutOfOrderSequenceError, SaslAuthenticationError
from ottla.errors.codes import ErrorCode
from ottla.records.kernels import NO_HEADERS, Delivery

PRODUCER_ID = 7
REFUSALS = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
]


class World:
    """One producer without its loop, a cluster, and the requests between them."""

    def __init__(self, *, partitions: int = 2, is_idempotent: bool = True, **changes: Any) -> None:
        self.now_ms = 1_000
        self.settings = small_settings(enable_idempotence=is_idempotent, **changes)
        self.cluster = ModelCluster(partitions)
        self.metadata = Metadata(self.settings, lambda below: below // 2)
        self.metadata.want([TOPIC], self.now_ms)
        self.accumulator = Accumulator(self.settings, lambda topic, count, number: [each % count for each in range(number)])
        self.accumulator.set_partition_count(TOPIC, partitions)
        self.idempotence = Idempotence(is_transactional=False) if is_idempotent else None
        if self.idempotence is not None:
            self.idempotence.take_id(PRODUCER_ID, 0)
        self.sender = Sender(self.settings, self.accumulator, self.metadata, lambda below: below // 2, self.idempotence)
        self.sender.connecting.connections = self
        self.open = set(NODES)
        self.connects: dict[int, Connect] = {}
        self.in_flight = InFlight()
        self.sent: list[list[tuple[bytes, Delivery]]] = [[] for _ in range(partitions)]
        self.cluster.teach(self.metadata, self.now_ms)

    def send(self, partition: int, size: int = 10) -> Delivery | None:
        number = sum(map(len, self.sent))
        value = b"%06d" % number + b"x" * size
        delivery = self.accumulator.append(TOPIC, partition, (number, None, value, NO_HEADERS), None, self.now_ms)
        self.check_memory()
        if delivery is not None:
            self.sent[partition].append((value, delivery))
        return delivery

    def step(self) -> None:
        self.cluster.teach(self.metadata, self.now_ms)
        requests = self.sender.step(self.now_ms)
        for request in requests:
            if isinstance(request, Connect):
                assert request.node not in self.open
                assert request.node not in self.connects, "one attempt at a time"
                self.connects[request.node] = request
            else:
                assert request.node in self.open
        self.in_flight.add([request for request in requests if not isinstance(request, Connect)])
        limit = self.settings.max_in_flight_requests_per_connection
        assert all(len(requests) <= limit for requests in self.in_flight.requests.values())

    def is_open(self, node_id: int, channel: Channel = Channel.DATA) -> bool:
        return node_id in self.open

    def connect(self, node: int, error: KafkaError | None = None) -> None:
        """The attempt to connect to a node ends, if there is one."""
        request = self.connects.pop(node, None)
        if request is None:
            return
        if error is None:
            self.open.add(node)
            self.sender.answered(request, None, 0, self.now_ms)
        else:
            self.metadata.refresh("a node cannot be reached")
            self.sender.failed(request, error, self.now_ms)

    def answer(self, node: int, refusals: dict[int, int] | None = None) -> None:
        """The node executes its oldest request, and the answer arrives."""
        requests = self.in_flight.requests[node]
        if requests:
            request = requests.popleft()
            self.sender.answered(request, self.cluster.execute(node, request.message, refusals), 13, self.now_ms)

    def disconnect(self, node: int, executed: int) -> None:
        """The connection is lost: the node has executed the first `executed` requests, and no answer arrives."""
        self.open.discard(node)
        requests, self.in_flight.requests[node] = self.in_flight.requests[node], deque()
        for index, request in enumerate(requests):
            if index < executed:
                self.cluster.execute(node, request.message)
            self.sender.failed(request, NetworkError("the connection was lost"), self.now_ms)

    def settle(self) -> None:
        """Everything works from now on: all records are stored or given up."""
        self.accumulator.flushes += 1
        for _ in range(500):
            self.step()
            for node in NODES:
                self.connect(node)
                self.answer(node)
            if not self.accumulator.incomplete:
                return
            self.now_ms += 50
        raise AssertionError(f"not done after {500 * 50} ms: {list(self.accumulator.incomplete)}")

    def check_memory(self) -> None:
        memory = self.accumulator.memory
        held = sum(batch.capacity for batch in self.accumulator.incomplete if batch.reserved)
        assert 0 <= memory.used == held <= memory.limit

    def check_wanted(self) -> None:
        """No batch lingers that a caller waits for, nor one before it: its node, a backoff or an answer holds it up."""
        for queue in self.accumulator.busy.values():
            first = queue.batches[0]
            if any(batch.is_wanted for batch in queue.batches) and first.attempts == 0:
                assert self.accumulator.due_ms(queue) == 0
                leader = self.metadata.leader(*queue.key)
                held = leader is None or leader[0] not in self.open or bool(self.in_flight.requests[leader[0]])
                assert held or any(
                    other.in_flight or other.batches[0].attempts
                    for other in self.accumulator.queues.values()
                    if other.batches or other.in_flight
                )

    def check_results(self, *, is_ordered: bool, is_single: bool) -> None:
        assert self.accumulator.memory.used == 0
        assert not any(queue.batches or queue.in_flight for queue in self.accumulator.queues.values())
        for number, partition in enumerate(self.cluster.partitions):
            for value, delivery in self.sent[number]:
                if delivery.exception() is not None:
                    assert not is_single or partition.log.count(value) <= 1
                    continue
                offset = delivery.result().offset
                assert partition.log.count(value) == 1 if is_single else value in partition.log
                assert offset < 0 or partition.log[offset] == value
            if is_ordered:
                first_seen = list(dict.fromkeys(partition.log))
                assert first_seen == sorted(first_seen)


actions = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 1), st.sampled_from([0, 90]), st.integers(1, 6)),
        st.tuples(st.just("answer"), st.sampled_from(NODES)),
        st.tuples(st.just("answer"), st.sampled_from(NODES)),
        st.tuples(st.just("refuse"), st.sampled_from(NODES), st.integers(0, 1), st.sampled_from(REFUSALS)),
        st.tuples(st.just("disconnect"), st.sampled_from(NODES), st.integers(0, 5)),
        st.tuples(st.just("connect"), st.sampled_from(NODES), st.booleans()),
        st.tuples(st.just("move"), st.integers(0, 1)),
        st.tuples(st.just("forget"), st.integers(0, 1)),
        st.tuples(st.just("result"), st.integers(0, 1)),
        st.tuples(st.just("wait"), st.sampled_from([5, 150, 150, 1_000, 6_000])),
    ),
    min_size=5,
    max_size=80,
)


def play(world: World, script: list[Any]) -> None:
    for name, *arguments in script:
        if name == "send":
            for _ in range(arguments[2]):
                world.send(*arguments[:2])
        elif name == "result" and world.sent[arguments[0]]:
            world.sent[arguments[0]][-1][1].batch.want()
        elif name == "result":
            continue
        elif name == "answer":
            world.answer(*arguments)
        elif name == "refuse":
            world.answer(arguments[0], {arguments[1]: arguments[2]})
        elif name == "disconnect":
            world.disconnect(*arguments)
        elif name == "connect":
            world.connect(arguments[0], NetworkError("refused", is_unsent=True) if arguments[1] else None)
        elif name == "move":
            world.cluster.move_leader(*arguments)
        elif name == "forget":
            world.cluster.partitions[arguments[0]].forget(PRODUCER_ID)
        else:
            world.now_ms += arguments[0]
        world.step()  # as the runner does after every event
        world.check_memory()
        world.check_wanted()
    world.settle()


@settings(max_examples=examples(300), deadline=None)
@given(actions)
def test_idempotent_records_are_stored_once_and_in_order(script: list[Any]) -> None:
    world = World()
    play(world, script)
    world.check_results(is_ordered=True, is_single=True)


def test_batches_without_an_answer_are_stored_once_after_the_cluster_lost_the_one_before_them() -> None:
    world = World(partitions=1)
    for _ in range(2):
        world.send(0, 90)
        world.step()
        world.now_ms += 10
        world.step()
        world.answer(1)
    lost = world.sent[0].pop()
    world.cluster.partitions[0].lose_last(PRODUCER_ID)
    assert lost[0] not in world.cluster.partitions[0].log
    for _ in range(2):  # both are in flight when the connection is lost
        world.send(0, 90)
        world.now_ms += 10
        world.step()
    assert len(world.in_flight.requests[1]) == 2
    world.disconnect(1, executed=0)
    world.settle()
    assert [delivery.exception() for _, delivery in world.sent[0]] == [None, None, None]
    assert world.cluster.partitions[0].log == [value for value, _ in world.sent[0]]


def overtaken() -> World:
    """The first of four batches is answered; the others are stored, without an answer. The broker knows only the last one."""
    world = World(partitions=1)
    for _ in range(4):
        world.send(0, 90)
        world.now_ms += 10
        world.step()
        if len(world.sent[0]) == 1:
            world.answer(1)
    assert len(world.in_flight.requests[1]) == 3
    world.disconnect(1, executed=3)
    world.cluster.partitions[0].forget(PRODUCER_ID)
    return world


def test_batches_that_a_later_one_has_overtaken_fail_and_are_not_sent_again() -> None:
    world = overtaken()
    world.settle()
    outcomes = [delivery.exception() for _, delivery in world.sent[0]]
    assert [type(outcome) for outcome in outcomes] == [type(None), OutOfOrderSequenceError, OutOfOrderSequenceError, type(None)]
    assert "may be stored or not" in str(outcomes[1])
    assert world.sent[0][3][1].result().offset == 3
    assert world.cluster.partitions[0].log == [value for value, _ in world.sent[0]]
    world.send(0, 90)
    world.settle()
    world.check_results(is_ordered=True, is_single=True)
    assert world.sent[0][4][1].result().offset == 4


def test_a_later_batch_in_a_log_without_producer_state_does_not_complete_those_before_it() -> None:
    world = overtaken()
    partition = world.cluster.partitions[0]
    del partition.log[1:]
    world.now_ms += 1_000
    world.step()
    world.answer(1)  # refused: the broker has a later batch
    world.now_ms += 10
    partition.producers.clear()
    world.settle()
    for value, delivery in world.sent[0]:
        assert delivery.exception() is not None or value in partition.log
    world.check_results(is_ordered=True, is_single=True)


@settings(max_examples=examples(150), deadline=None)
@given(actions)
def test_one_request_in_flight_keeps_order_without_idempotence(script: list[Any]) -> None:
    world = World(is_idempotent=False, max_in_flight_requests_per_connection=1)
    play(world, script)
    world.check_results(is_ordered=True, is_single=False)


@settings(max_examples=examples(100), deadline=None)
@given(actions)
def test_records_are_not_lost_without_idempotence(script: list[Any]) -> None:
    world = World(is_idempotent=False)
    play(world, script)
    world.check_results(is_ordered=False, is_single=False)


def test_a_batch_opened_while_the_sender_looks_is_not_forgotten() -> None:
    """A calling thread opens the only batch in the middle of a step, and asks whether to wake the loop after it."""
    world = World(linger_ms=5)
    assert world.idempotence is not None
    resolve = world.idempotence.resolve

    def resolve_while_another_thread_sends() -> bool:
        if not world.accumulator.incomplete:
            world.send(0)
        return resolve()

    world.idempotence.resolve = resolve_while_another_thread_sends  # type: ignore[method-assign]
    world.step()
    assert world.accumulator.must_wake(world.now_ms) or world.sender.next_deadline_ms() == world.now_ms + 5


def test_oldest_batch_is_looked_up_under_the_lock() -> None:
    """Another thread may open a batch between `iter` and `next`, and a dict that grows breaks its iterator."""

    class Held:
        is_held = is_watched = False

        def __enter__(self) -> None:
            self.is_held = True

        def __exit__(self, *_: object) -> None:
            self.is_held = False

    class Incomplete(dict[Any, None]):
        def __iter__(self) -> Any:
            assert lock.is_held or not lock.is_watched
            return super().__iter__()

    lock = Held()
    world = World()
    world.accumulator.lock = lock
    world.accumulator.incomplete = Incomplete()
    world.send(0)
    lock.is_watched = True
    world.sender.step(world.now_ms)
    world.sender.step(world.now_ms + world.settings.delivery_timeout_ms)
    assert not world.accumulator.incomplete


def test_partitioner_hears_which_nodes_take_requests() -> None:
    world = World(linger_ms=0)
    tried: list[tuple[int, bool]] = []
    world.sender.node_tried = lambda node, now_ms, can_send: tried.append((node, can_send))
    world.step()
    assert tried == []  # nothing waits
    for partition in range(2):
        world.send(partition)
        world.step()
    node = world.cluster.partitions[0].leader
    assert tried == [(node, True), (node, False)]  # before its first answer a node gets one request
    world.disconnect(node, executed=1)
    world.now_ms += 1_000
    world.step()
    assert tried[-1] == (node, False)


def test_a_node_that_throttles_gets_nothing_until_its_time_is_over() -> None:
    world = World(linger_ms=0)
    world.cluster.partitions[1].leader, world.cluster.partitions[1].epoch = NODES[1], 1
    world.metadata.learn_leader(TOPIC, 1, NODES[1], 1)

    def exchange(node: int, throttle_ms: int, version: int = 13) -> None:
        request = world.in_flight.requests[node].popleft()
        response = world.cluster.execute(node, request.message)
        response.throttle_time_ms = throttle_ms
        world.sender.answered(request, response, version, world.now_ms)

    for partition in range(2):
        world.send(partition)
    world.step()
    exchange(NODES[0], 500)
    exchange(NODES[1], 500, version=5)  # this broker has waited before it answered
    for partition in range(2):
        world.send(partition)
        world.send(partition)
    world.step()
    assert [len(world.in_flight.requests[node]) for node in NODES] == [0, 1]
    assert world.sender.next_deadline_ms() == world.now_ms + 500
    world.now_ms += 499
    world.send(0)
    world.step()
    assert not world.in_flight.requests[NODES[0]]
    world.now_ms += 1
    world.step()
    assert len(world.in_flight.requests[NODES[0]]) == 1
    exchange(NODES[0], 0)
    assert len(world.cluster.partitions[0].log) == 4, "what came during the wait was sent in one batch"


def test_batch_follows_its_leader_while_a_dead_node_is_connected_to() -> None:
    world = World(partitions=1, linger_ms=0)
    world.open.discard(NODES[0])
    first = world.send(0)
    world.step()
    assert world.connects.keys() == {NODES[0]}
    world.send(0)  # into the same batch: it has not left
    world.cluster.move_leader(0)
    world.metadata.refresh("a leader moved")
    world.now_ms += 100
    world.step()
    assert [len(world.in_flight.requests[node]) for node in NODES] == [0, 1]
    world.answer(NODES[1])
    assert first is not None
    assert first.result().offset == 0
    assert world.cluster.partitions[0].log == [value for value, _ in world.sent[0]]
    assert world.connects.keys() == {NODES[0]}, "the dead node is still waited for, and nothing depends on it"


def test_batch_in_flight_follows_its_leader_after_the_connection_is_lost() -> None:
    world = World(partitions=1, linger_ms=0)
    world.send(0)
    world.step()
    world.disconnect(NODES[0], executed=1)
    world.cluster.move_leader(0)
    world.now_ms += 100
    world.step()
    assert not world.connects
    world.settle()
    world.check_results(is_ordered=True, is_single=True)


def test_attempts_to_connect_do_not_use_up_retries() -> None:
    world = World(partitions=1, linger_ms=0, retries=1)
    world.open.clear()
    world.send(0)
    for _ in range(5):
        world.step()
        world.connect(NODES[0], NetworkError("connection refused", is_unsent=True))
        world.now_ms += 10
    ((batch,),) = [queue.batches for queue in world.accumulator.busy.values()]
    assert batch.attempts == 0
    assert world.sender.outcomes.why_not_stored(batch) == "node 1 is not connected: connection refused"
    world.settle()
    world.check_results(is_ordered=True, is_single=True)


def test_refused_login_fails_the_batches_of_that_node_only() -> None:
    world = World(linger_ms=0)
    world.cluster.move_leader(1)
    world.open.clear()
    refused, kept = world.send(0), world.send(1)
    world.metadata.refresh("a leader moved")
    world.now_ms += 100
    world.step()
    world.connect(NODES[0], SaslAuthenticationError("wrong password", is_unsent=True))
    assert refused is not None
    assert isinstance(refused.exception(), SaslAuthenticationError)
    assert kept is not None
    assert not kept.done()
    world.settle()
    assert kept.result().offset == 0


def test_topic_that_is_sent_to_does_not_count_as_unused() -> None:
    world = World(partitions=1, linger_ms=0)
    world.sender._metadata = metadata = Metadata(world.settings, lambda below: below // 2, idle_max_ms=5_000)
    metadata.want([TOPIC], world.now_ms)
    for _ in range(20):
        metadata.refresh("a leader may have moved")
        world.cluster.teach(metadata, world.now_ms)
        world.send(0)
        world.sender.step(world.now_ms)
        world.now_ms += 1_000
    metadata.refresh("a leader has moved")
    (request,) = metadata.step(world.now_ms)
    assert request.adapt is not None
    asked: Any = request.adapt(13)
    assert [each.name for each in asked.topics] == [TOPIC]
