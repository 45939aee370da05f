"""The load programs: parsing of outputs and replies, and correct counts."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench.side_by_side import consume, latency, raw
from bench.side_by_side.admin import _folders
from bench.side_by_side.compaction import checkpoint_offset
from bench.side_by_side.errors import BadReply, LoadFailed
from bench.side_by_side.loads import frames
from bench.side_by_side.loads.probe import Caller, Load, percentile
from bench.side_by_side.produce import parse_rate
from bench.side_by_side.start import API_VERSIONS_REQUEST

from ottla.wire.codec import encode_bytes
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

STALL_S = 0.3


class Answerer:
    """A server that answers each frame with an empty one, and stalls once on request."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.stall_after = -1
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        receiver = frames.Receiver(connection, 1 << 10)
        try:
            for number in range(1 << 30):
                receiver.frame()
                if number == self.stall_after:
                    time.sleep(STALL_S)
                connection.sendall(struct.pack(">ii", 4, 7))
        except (BadReply, OSError):
            connection.close()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def answerer() -> Iterator[Answerer]:
    server = Answerer()
    yield server
    server.close()


def callers(answerer: Answerer, count: int) -> list[Caller]:
    return [Caller(frames.connect(answerer.address), struct.pack(">i", 3) + b"abc") for _ in range(count)]


def nothing_wrong(reply: frames.Reply) -> None:
    assert reply == struct.pack(">i", 7)


def test_rate_is_that_of_the_whole_run() -> None:
    output = (
        "1000 records sent, 200.0 records/sec (0.19 MB/sec), 3.0 ms avg latency, 9.0 ms max latency.\n"
        "5000 records sent, 999.1 records/sec (95.37 MB/sec), 2.05 ms avg latency, 10.0 ms max latency, 2 ms 50th, 5 ms 95th.\n"
    )
    assert parse_rate(output) == 95.37
    with pytest.raises(LoadFailed, match="no summary"):
        parse_rate("org.apache.kafka.common.errors.TimeoutException\n")


def test_fetch_rate_excludes_the_time_to_join() -> None:
    output = (
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms,"
        " fetch.MB.sec, fetch.nMsg.sec\n"
        "2026-01-02 10:00:00:000, 2026-01-02 10:00:04:000, 953.6, 238.4, 1000000, 250000.0, 500, 3500, 272.4784, 285714.3\n"
    )
    assert consume.parse_rate(output, 1_000_000) == 272.4784
    with pytest.raises(LoadFailed, match="did not read"):
        consume.parse_rate(output, 1_000_001)
    with pytest.raises(LoadFailed, match="did not read"):
        consume.parse_rate("org.apache.kafka.common.errors.TimeoutException\n", 1)


def test_mean_of_the_latency_tool() -> None:
    output = "0\t3.25\n1000\t0.66\nAvg latency: 0.6912 ms\nPercentiles: 50th = 0, 99th = 1, 99.9th = 4\n"
    assert latency.parse_mean(output) == 0.6912
    with pytest.raises(LoadFailed, match="no average"):
        latency.parse_mean("org.apache.kafka.common.errors.TimeoutException\n")


def test_checkpoints_of_cleaners() -> None:
    text = "0\n3\ncompaction-x 0 5\ncompaction 1 7\ncompaction 0 1234\n"
    assert checkpoint_offset(text, "compaction", 0) == 1234
    assert checkpoint_offset(text, "other", 0) == -1
    assert checkpoint_offset("", "compaction", 0) == -1


def produce_reply(code: int) -> bytes:
    partition = PartitionProduceResponse(index=5, error_code=code, base_offset=9)
    body = ProduceResponse(responses=[TopicProduceResponse(name="topic", partition_responses=[partition])])
    return struct.pack(">ib", 1, 0) + encode_bytes(body, frames.PRODUCE_VERSION)


def framed(reply: bytes) -> bytes:
    return struct.pack(">i", len(reply)) + reply


def test_error_code_of_a_produce_reply() -> None:
    for code in (0, 3, -1):
        assert frames.produce_error(produce_reply(code), "topic") == code
    with pytest.raises(BadReply, match=r"Server .* error 3"):
        frames.produce_check("Server", "topic")(produce_reply(3))


def test_first_write_is_repeated_until_the_partition_exists() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(framed(produce_reply(3)) + framed(produce_reply(6)) + framed(produce_reply(0)))
        frames.write_first(ours, b"request;", "topic")
        assert theirs.recv(100) == b"request;" * 3


def test_first_write_is_not_repeated_after_a_final_error() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(framed(produce_reply(87)))
        with pytest.raises(BadReply, match="error 87"):
            frames.write_first(ours, b"request;", "topic")
        assert theirs.recv(100) == b"request;"


def test_first_request_of_the_start_row_is_one_frame() -> None:
    size, key, version, _, client_length = struct.unpack_from(">ihhih", API_VERSIONS_REQUEST)
    assert (size, key, version, client_length) == (len(API_VERSIONS_REQUEST) - 4, 18, 0, 4)


def test_folders_of_a_topic_with_a_longer_name_are_not_matched(tmp_path: Path) -> None:
    for name in ("a-0", "a-1.0123abc-delete", "a-b-0", "a", "b-0"):
        (tmp_path / name).mkdir()
    assert sorted(path.name for path in _folders(tmp_path, "a")) == ["a-0", "a-1.0123abc-delete"]


def test_percentiles() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert percentile([3.0], 0.99) == 3.0


def test_saturated_connections_all_get_their_answers(answerer: Answerer) -> None:
    with Load(callers(answerer, 20), nothing_wrong) as load:
        rate = load.saturate(1)
    assert rate >= 20


def test_stall_delays_all_requests_that_were_due(answerer: Answerer) -> None:
    answerer.stall_after = 20
    with Load(callers(answerer, 1), nothing_wrong) as load:
        end = time.perf_counter() + 1.5
        samples = load.paced(100, lambda: time.perf_counter() > end)
    assert len(samples) >= 125, "requests become due while the server stalls"
    late = [took_s for _, took_s in samples if took_s > STALL_S / 10]
    assert len(late) >= 15, "not only the one request that the server was busy with"


def test_a_bad_reply_ends_a_load(answerer: Answerer) -> None:
    def refuse(reply: frames.Reply) -> None:
        raise BadReply("no")

    with Load(callers(answerer, 1), refuse) as load, pytest.raises(BadReply):
        load.saturate(1)


def test_loopback_limit_stores_and_returns_the_data(tmp_path: Path) -> None:
    bench: Any = SimpleNamespace(folder=tmp_path)
    rates = raw.limit_round(bench, bytearray(b"x" * 100_000), count=20)
    assert set(rates) == {"limit in", "limit out"}
    assert min(rates.values()) > 1
    assert list(tmp_path.iterdir()) == []
