"""Moves between log directories, concurrent with producers and consumers, and their failures."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.support.logs.batches import make_batch, records_of
from tests.support.nodes.held_partitions import virtual, waiting
from tests.unit.broker.partitions.moving_node import T_0, MovingNode

from ottla.broker.partitions import moves
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "PIECE_BYTES", 4000)


SLOW = 50_000
"""Bytes per second at which the records of a test take two seconds."""


def scene(play: Callable[[MovingNode], Awaitable[None]], paths: tuple[str, ...] = ("/a", "/b"), **settings: str) -> None:
    """Play with a node whose t-0 is in /a with 100 records of 1 KB."""

    async def whole() -> None:
        node = await MovingNode.open({name.replace("_", "."): value for name, value in settings.items()}, paths)
        await node.held.make_topic("t")
        for number in range(100):
            assert node.held.produced("t", 0, batch(number)).base_offset == number
        assert node.place() == "/a"
        await play(node)
        await node.moves.stop()

    virtual(whole())


def batch(number: int) -> bytes:
    return bytes(make_batch(b"%d " % number + b"x" * 1000))


def numbers(node: MovingNode) -> list[int]:
    """The numbers of the records that are there, in order."""
    found: list[int] = []
    log = node.held.partition("t").log
    while (records := log.read(len(found), 100_000).records) is not None:
        found += [int((record.value or b"").split()[0]) for record in records_of(records.read()) if record.offset >= len(found)]
    return found


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came to that")


def test_a_move_from_the_request_to_its_end() -> None:
    async def play(node: MovingNode) -> None:
        await until(lambda: node.known_place() == "/a")
        node.throttle(SLOW)
        await node.moves.request(T_0, "/b")
        assert (node.place(), node.on_its_way_to()) == ("/a", "/b")
        await asyncio.sleep(0.5)
        assert (node.place(), node.on_its_way_to(), len(node.moves)) == ("/a", "/b", 1)
        for number in range(100, 110):
            assert node.held.produced("t", 0, batch(number)).base_offset == number
        await until(lambda: not len(node.moves))
        assert (node.place(), node.on_its_way_to(), node.known_place()) == ("/b", None, "/b")
        assert node.held.produced("t", 0, batch(110)).base_offset == 110
        assert numbers(node) == list(range(111))
        await node.restart(crash=True)
        assert (node.place(), numbers(node)) == ("/b", list(range(111)))

    scene(play)


def test_fetch_parked_during_a_move_is_answered() -> None:
    async def play(node: MovingNode) -> None:
        asked = FetchPartition(partition=0, fetch_offset=100, partition_max_bytes=10_000)
        request = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[asked])])
        waits = waiting(node.held.fetch(request))
        await node.moves.request(T_0, "/b")
        await until(lambda: not len(node.moves))
        assert not waits.done()
        node.held.produced("t", 0, batch(100))
        response = await asyncio.wait_for(waits, 1)
        [answer] = response.responses[0].partitions
        assert [record.offset for record in records_of(answer.records.read())] == [100]

    scene(play)


def test_flushed_records_survive_a_power_loss_at_any_step_of_a_move() -> None:
    places: set[str] = set()
    for turns in range(0, 120, 3):

        async def play(node: MovingNode, turns: int = turns) -> None:
            disk = node.held.disk

            async def pause() -> None:
                await asyncio.sleep(0.001)

            disk.pause = pause
            await node.held.configure("t", flush_messages=1)
            acked = 0

            async def keep_producing() -> None:
                nonlocal acked
                for number in range(100, 1000):
                    answer = await waiting(node.held.produce("t", 0, batch(number)))
                    if answer.responses[0].partition_responses[0].error_code or disk.crashed:
                        return
                    acked = number + 1

            producing = asyncio.create_task(keep_producing())
            asking = asyncio.create_task(node.moves.request(T_0, "/b"))
            await asyncio.sleep(turns / 1000)
            disk.crashed = True
            await asyncio.gather(producing, asking, return_exceptions=True)
            disk.pause = None
            await node.restart(power_loss=True)
            assert numbers(node)[:acked] == list(range(acked))
            places.add(node.place())

        scene(play)
    assert places == {"/a", "/b"}


def test_move_back_to_the_old_directory_cancels_the_move() -> None:
    async def play(node: MovingNode) -> None:
        node.throttle(SLOW)
        await node.moves.request(T_0, "/b")
        await asyncio.sleep(0.3)
        await node.moves.request(T_0, "/a")
        assert (node.place(), node.on_its_way_to(), len(node.moves)) == ("/a", None, 0)
        await until(lambda: node.known_place() == "/a")
        assert numbers(node) == list(range(100))
        await node.restart()
        assert (node.place(), node.on_its_way_to()) == ("/a", None)

    scene(play)


def test_second_target_replaces_the_first() -> None:
    async def play(node: MovingNode) -> None:
        node.throttle(SLOW)
        await node.moves.request(T_0, "/b")
        await asyncio.sleep(0.3)
        await node.moves.request(T_0, "/c")
        assert (node.place(), node.on_its_way_to()) == ("/a", "/c")
        await node.moves.request(T_0, "/c")
        await until(lambda: not len(node.moves))
        assert (node.place(), node.known_place(), numbers(node)) == ("/c", "/c", list(range(100)))

    scene(play, ("/a", "/b", "/c"))


def test_last_of_concurrent_requests_decides_the_directory() -> None:
    async def play(node: MovingNode) -> None:
        await asyncio.gather(*(node.moves.request(T_0, path) for path in ("/b", "/b", "/c", "/b")))
        await until(lambda: not len(node.moves))
        assert (node.place(), numbers(node)) == ("/b", list(range(100)))

    scene(play, ("/a", "/b", "/c"))


@pytest.mark.parametrize("crash", [False, True])
def test_a_move_goes_on_after_a_restart(crash: bool) -> None:
    async def play(node: MovingNode) -> None:
        node.throttle(SLOW)
        await node.moves.request(T_0, "/b")
        await asyncio.sleep(1)
        await node.restart(crash=crash)
        assert (node.place(), node.on_its_way_to()) == ("/a", "/b")
        await until(lambda: not len(node.moves))
        assert (node.place(), node.known_place(), numbers(node)) == ("/b", "/b", list(range(100)))

    scene(play)


def test_topic_deleted_during_its_move() -> None:
    async def play(node: MovingNode) -> None:
        node.throttle(SLOW)
        await node.moves.request(T_0, "/b")
        await asyncio.sleep(0.3)
        await node.held.delete_topic("t")
        await until(lambda: not len(node.moves))
        await node.held.make_topic("t")
        node.held.produced("t", 0, batch(0))
        assert numbers(node) == [0]
        await node.restart(crash=True)
        assert numbers(node) == [0]
        assert node.on_its_way_to() is None

    scene(play)


def test_a_throttle_is_kept() -> None:
    async def play(node: MovingNode) -> None:
        node.throttle(SLOW)
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        await node.moves.request(T_0, "/b")
        await until(lambda: not len(node.moves))
        assert 1.5 < loop.time() - started_s < 3.5

    scene(play)


def test_a_throttle_is_for_all_moves_together() -> None:
    async def play(node: MovingNode) -> None:
        await node.held.make_topic("u")
        for number in range(100):
            node.held.produced("u", 0, batch(number))
        other = TopicPartition("u", 0)
        node.throttle(SLOW)
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        await node.moves.request(T_0, "/b")
        await node.moves.request(other, "/c")
        assert len(node.moves) == 2
        await until(lambda: not len(node.moves))
        size_bytes = node.held.partition("t").log.size_bytes + node.held.partition("u").log.size_bytes
        assert (node.place(), node.place(other)) == ("/b", "/c")
        assert loop.time() - started_s > 0.8 * size_bytes / SLOW

    scene(play, ("/a", "/b", "/c"))


def test_a_target_that_fails_leaves_the_partition_where_it_was() -> None:
    async def play(node: MovingNode) -> None:
        node.throttle(SLOW)
        await node.moves.request(T_0, "/b")
        await asyncio.sleep(0.3)
        node.held.disk.fail_directory("/b")
        await until(lambda: not len(node.moves))
        assert node.place() == "/a"
        assert node.held.produced("t", 0, batch(100)).base_offset == 100
        assert numbers(node) == list(range(101))
        with pytest.raises(KafkaError) as refused:
            await node.moves.request(T_0, "/b")
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR

    scene(play, ("/a", "/b", "/c"))


def test_records_that_are_damaged_are_not_moved() -> None:
    async def play(node: MovingNode) -> None:
        node.held.partition("t").log.segments.active.file.write_at(50_000, b"damage")
        await node.moves.request(T_0, "/b")
        await until(lambda: not len(node.moves))
        assert (node.place(), node.on_its_way_to()) == ("/a", None)
        assert node.held.produced("t", 0, batch(100)).base_offset == 100

    scene(play)


def test_partition_stays_if_the_controller_refuses_the_report() -> None:
    async def play(node: MovingNode) -> None:
        await until(lambda: node.known_place() == "/a")
        node.controller.refusal = KafkaError(ErrorCode.NOT_CONTROLLER, "not now")
        await node.moves.request(T_0, "/b")
        await until(lambda: not len(node.moves))
        assert (node.place(), node.on_its_way_to()) == ("/a", "/b")
        node.controller.refusal = None
        await node.moves.request(T_0, "/b")
        await until(lambda: not len(node.moves))
        assert (node.place(), node.known_place()) == ("/b", "/b")

    scene(play)


def test_move_ends_although_appends_outrun_the_pieces() -> None:
    async def play(node: MovingNode) -> None:
        async def flood() -> None:
            number = 100
            while node.place() == "/a":
                for _ in range(600):  # more than a piece in every turn of the loop
                    node.held.produced("t", 0, batch(number))
                    number += 1
                await asyncio.sleep(0)

        flooding = asyncio.create_task(flood())
        await node.moves.request(T_0, "/b")
        await asyncio.wait_for(flooding, 60)
        assert numbers(node) == list(range(node.held.partition("t").log.log_end_offset))

    scene(play)


@pytest.mark.parametrize(
    ("name", "path", "code"),
    [
        (T_0, "/nowhere", ErrorCode.LOG_DIR_NOT_FOUND),
        (T_0, "/a/", ErrorCode.LOG_DIR_NOT_FOUND),
        (TopicPartition("t", 9), "/b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicPartition("nope", 0), "/b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicPartition("nope", 0), "/nowhere", ErrorCode.LOG_DIR_NOT_FOUND),
        (TopicPartition("elsewhere", 0), "/b", ErrorCode.REPLICA_NOT_AVAILABLE),
        (TopicPartition("x" * 249, 0), "/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (T_0, "/c", ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_refusals(name: TopicPartition, path: str, code: int) -> None:
    async def play(node: MovingNode) -> None:
        await node.held.make_topic("elsewhere", replicas=(2,))
        with pytest.raises(KafkaError) as refused:
            await node.moves.request(name, path)
        assert refused.value.code == code
        assert (node.place(), node.on_its_way_to()) == ("/a", None)

    scene(play, ("/a", "/b", "/c"), cordoned_log_dirs="/c")


def test_requested_directory_is_used_when_the_partition_is_created() -> None:
    async def play(node: MovingNode) -> None:
        for number in range(4):
            with pytest.raises(KafkaError):
                await node.moves.request(TopicPartition(f"later{number}", 0), "/b")
            await node.held.make_topic(f"later{number}")
            assert node.place(TopicPartition(f"later{number}", 0)) == "/b"

    scene(play)


def test_directories_of_new_partitions_are_reported_to_the_controller() -> None:
    async def play(node: MovingNode) -> None:
        await node.held.make_topic("new", 4)
        node.moves.metadata_changed()
        names = [TopicPartition("new", index) for index in range(4)]
        await until(lambda: all(node.known_place(name) == node.place(name) for name in (*names, T_0)))
        writes = node.controller.writes
        node.moves.metadata_changed()
        await asyncio.sleep(1)
        assert node.controller.writes == writes

    scene(play)


def test_node_with_one_directory_reports_nothing() -> None:
    async def play(node: MovingNode) -> None:
        node.moves.metadata_changed()
        await asyncio.sleep(1)
        assert node.controller.writes == 0

    scene(play, ("/a",))
