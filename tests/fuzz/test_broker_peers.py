"""Clients that misbehave towards a whole node: they do not read, do not finish, speak another protocol, or are thousands.

An honest client is served quickly at the same time (`Honest`). Afterwards the node is unharmed (`HostileNode`).
"""

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.support.hostile.hostile_client import HostileClient, many_open_files
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.logs.batches import make_batch
from tests.support.peers.topics import await_true, make_topic

from ottla.wire.codec import join_parts
from ottla.wire.headers import encode_request
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

pytestmark = linux_only

LATENCY_S_MAX = 8.0
"""How much processor time the node may spend on other requests while an honest client waits for one response."""

STRANGE = {
    "http": b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
    "tls": bytes.fromhex("16030100c8010000c40303") + bytes(190),
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "negative": b"\xff\xff\xff\xff",
    "most negative": b"\x80\0\0\0",
    "too large": b"\x7f\xff\xff\xff",
    "one too large": (104_857_601).to_bytes(4, "big"),
    "empty": bytes(4),
    "many empty": bytes(4000),
    "one byte": b"\0\0\0\1\0",
    "no such api": b"\0\0\0\x0a" + b"\x7f\xff\0\0\0\0\0\1\xff\xff",
    "negative api": b"\0\0\0\x0a" + b"\xff\xff\0\0\0\0\0\1\xff\xff",
    "removed api": b"\0\0\0\x0a" + b"\0\4\0\0\0\0\0\1\xff\xff",
    "of groups": b"\0\0\0\x0a" + b"\0\x0b\0\0\0\0\0\1\xff\xff",
    "long client id": b"\0\0\0\x0a" + b"\0\x12\0\0\0\0\0\1\x7f\xff",
}


def frame(message: FetchRequest | MetadataRequest | ProduceRequest, version: int, correlation_id: int = 7) -> bytes:
    return join_parts(encode_request(message, version, correlation_id, "hostile"))


class Honest(threading.Thread):
    """A client that sends one request after the other, and notes how long each took."""

    def __init__(self, node: HostileNode) -> None:
        super().__init__(daemon=True)
        self._node = node
        self._is_over = threading.Event()
        self.waits_s: list[float] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with self._node.connect(60) as client:
                while not self._is_over.wait(0.01):
                    begun_s = self._node.cpu_s
                    client.request(MetadataRequest(topics=[]), 9)
                    self.waits_s.append(self._node.cpu_s - begun_s)
        except BaseException as failure:
            self.failure = failure

    def end(self) -> None:
        self._is_over.set()
        self.join()
        assert self.failure is None, self.failure
        assert self.waits_s, "the honest client was never served"
        assert max(self.waits_s) < LATENCY_S_MAX, (
            f"the honest client waited while the node worked for {max(self.waits_s):.1f} s"
        )


@contextmanager
def disturbed(node: HostileNode) -> Iterator[None]:
    honest = Honest(node)
    honest.start()
    yield
    served = len(honest.waits_s)
    # Two more: the first may have been asked for before the disturbance was complete.
    await_true(lambda: honest.failure is not None or len(honest.waits_s) >= served + 2, "the honest client to be served")
    honest.end()


@pytest.fixture(scope="module")
def node() -> Iterator[HostileNode]:
    with HostileNode() as running:
        make_topic(running.bootstrap, "large", 1, {"max.message.bytes": 10_000_000})
        batch = bytes(make_batch(b"x" * 1_000_000))
        part = PartitionProduceData(index=0, records=batch)
        with running.connect() as client:
            for _ in range(64):
                topic = TopicProduceData(name="large", partition_data=[part])
                (answer,) = client.request(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic]), 9).responses
                assert answer.partition_responses[0].error_code == 0
        running.memory_bytes_before = running.memory_bytes
        yield running


@pytest.fixture(autouse=True)
def _unharmed(node: HostileNode) -> Iterator[None]:
    yield
    node.must_be_unharmed()


@pytest.fixture
def many_files() -> Iterator[None]:
    with many_open_files():
        yield


def all_of_it(correlation_id: int = 7) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=60_000_000)
    fetch = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=60_000_000, session_epoch=-1)
    fetch.topics = [FetchTopic(topic="large", partitions=[partition])]
    return frame(fetch, 11, correlation_id)


@pytest.mark.parametrize("what", sorted(STRANGE))
def test_bytes_that_are_no_request_close_the_connection(node: HostileNode, what: str) -> None:
    with node.connect() as client:
        client.send_bytes(STRANGE[what])
        if what == "long client id":
            client.half_close()  # the frame is whole, so this changes nothing
        assert client.await_end() == 0
    assert node.log.rstrip().splitlines()[-1].count("closing the connection") == 1


def test_clients_that_never_read_large_responses_use_bounded_memory(node: HostileNode) -> None:
    ask = all_of_it() * 20
    before = node.memory_bytes
    with disturbed(node):
        clients = [node.connect() for _ in range(30)]
        for client in clients:
            client.send_what_fits(ask)
        time.sleep(0.5)
        assert node.memory_bytes - before < 60_000_000
        for client in clients:
            client.close()


def test_pipelined_requests_that_are_never_read_use_bounded_memory(node: HostileNode) -> None:
    ask = frame(MetadataRequest(topics=None), 9) * 10_000
    before = node.memory_bytes
    with disturbed(node):
        clients = [node.connect() for _ in range(5)]
        for client in clients:
            client.send_what_fits(ask)
        time.sleep(0.5)
        assert node.memory_bytes - before < 60_000_000
        for client in clients:
            client.close()


def test_10_000_pipelined_requests_are_answered_in_order(node: HostileNode) -> None:
    with node.connect(60) as client:
        asks = [frame(MetadataRequest(topics=[]), 9, number) for number in range(10_000)]
        sender = threading.Thread(target=lambda: client.send_bytes(b"".join(asks)))
        sender.start()
        time.sleep(0.5)
        for number in range(10_000):
            assert client.receive_frame()[:4] == number.to_bytes(4, "big")
        sender.join()


def test_request_sent_byte_by_byte_is_answered(node: HostileNode) -> None:
    ask = frame(MetadataRequest(topics=[]), 9)
    with disturbed(node), node.connect() as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in ask:
            client.send_bytes(bytes([byte]))
            time.sleep(0.001)
        assert client.receive_frame()[:4] == b"\0\0\0\7"


def test_half_closed_connection_is_closed(node: HostileNode) -> None:
    """The node closes the connection of a client that will send no more."""
    with node.connect() as client:
        client.send_bytes(all_of_it())
        client.half_close()
        client.await_end()


def test_announced_frame_sizes_use_bounded_memory(node: HostileNode, many_files: None) -> None:
    before = node.memory_bytes
    with disturbed(node):
        clients = [node.connect() for _ in range(500)]
        for client in clients:
            client.send_bytes((100_000_000).to_bytes(4, "big"))
        node.must_serve()
        assert node.memory_bytes - before < 260_000_000  # above half of the bound on requests, each gets only small buffers
        for client in clients:
            client.close()


def test_300_unfinished_requests_do_not_disturb_others(node: HostileNode, many_files: None) -> None:
    """Each sends a request in pieces, and never its last byte."""
    ask = frame(MetadataRequest(topics=[]), 9)
    with disturbed(node):
        clients = [node.connect() for _ in range(300)]
        for piece in (ask[:3], ask[3:11], ask[11:-1]):
            for client in clients:
                client.send_bytes(piece)
        for client in clients:
            client.close()


def test_2000_idle_connections_use_little_memory(node: HostileNode, many_files: None) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(2000, soft - 200)
    before = node.memory_bytes
    clients: list[HostileClient] = []
    try:
        with disturbed(node):
            clients += [node.connect(60) for _ in range(count)]
            for client in clients[:: count // 20]:
                assert client.request(MetadataRequest(topics=[]), 9).brokers
        assert node.memory_bytes - before < 60_000_000
    finally:
        for client in clients:
            client.close()
    node.must_serve()


def test_memory_of_disconnected_clients_is_free_for_others() -> None:
    """Frames that never end fill the memory for requests. Later clients are served, and memory stays within the bound."""
    limit = 40_000_000
    settings = [f"--set=queued.max.request.bytes={limit}", f"--set=socket.request.max.bytes={limit}"]
    with HostileNode(settings=settings) as node:
        make_topic(node.bootstrap, "large")
        record = PartitionProduceData(index=0, records=bytes(make_batch(b"x" * 500_000)))
        topic = TopicProduceData(name="large", partition_data=[record])
        clients = [node.connect() for _ in range(300)]
        for client in clients:
            client.send_bytes((30_000_000).to_bytes(4, "big"))
        for _ in range(3):
            for client in clients:
                client.send_what_fits(bytes(300_000))
            node.must_serve()
        for _ in range(2):
            with node.connect(60) as honest:
                (answer,) = honest.request(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic]), 9).responses
                assert answer.partition_responses[0].error_code == 0
        for client in clients:
            client.close()
        assert "comes in too slowly" in node.log
        assert node.memory_bytes_peak - node.memory_bytes_before < 1.3 * limit + 20_000_000


def test_connections_leave_descriptors_for_files() -> None:
    """A client that opens all the connections it can takes no descriptors from topics. Only new connections are refused."""
    with HostileNode(command_prefix=["prlimit", "--nofile=80:80"]) as node:
        clients = [node.connect() for _ in range(100)]
        ask = MetadataRequest(topics=[])
        assert clients[0].request(ask, 9).brokers, "connections that are open are served"
        wanted = CreateTopicsRequest(
            topics=[CreatableTopic(name="new", num_partitions=2, replication_factor=1)], timeout_ms=5000
        )
        assert clients[0].request(wanted, 7).topics[0].error_code == 0
        record = PartitionProduceData(index=1, records=bytes(make_batch(b"x")))
        produce = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name="new", partition_data=[record])])
        assert clients[0].request(produce, 9).responses[0].partition_responses[0].error_code == 0
        assert "kept for files" in node.log
        for client in clients:
            client.close()
        await_true(lambda: answers(node), "the node to accept again")


def answers(node: HostileNode) -> bool:
    try:
        with node.connect() as client:
            return bool(client.request(MetadataRequest(topics=[]), 9).brokers)
    except ConnectionError:
        return False
