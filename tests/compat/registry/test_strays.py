"""A registry paused until the broker has forgotten the fence appends a stray. Compaction takes no schema away for that."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.support.cases.registry_load import numbered_schema
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import HANG_S

from ottla import Admin, Producer
from ottla.client.admin.producers import describe_producers
from ottla.client.cluster import open_cluster
from ottla.client.world import real_client_world
from ottla.config.client import admin_settings
from ottla.registry.records import TOPIC, Content, Stored, schema_key, schema_value
from ottla.registry.server import RegistryThread
from ottla.registry.service import Registry
from ottla.registry.topic import PARTITION, PRODUCER_ID, SchemasTopic
from ottla.schemas import RegistryRefusedError, SchemaRegistry
from ottla.testing import Broker

SETTINGS = {
    "producer.id.expiration.ms": 200,
    "producer.id.expiration.check.interval.ms": 50,
    "log.initial.task.delay.ms": 100,
    "log.cleaner.backoff.ms": 100,
}
HELD_BACK = {"min.compaction.lag.ms": 3_600_000}
COMPACTED = {"cleanup.policy": "compact", "segment.ms": 50, "min.cleanable.dirty.ratio": 0.001}
KEY = schema_key("s", 1)
COUNTED, OTHER = numbered_schema(1), numbered_schema(2)

Read = list[tuple[bytes | None, bytes | None, bool | None]]


@contextmanager
def registry(servers: str) -> Iterator[SchemaRegistry]:
    thread = RegistryThread(admin_settings(servers, config={}, keywords={}))
    thread.start()
    try:
        yield SchemaRegistry(thread.url, timeout_s=HANG_S)
    finally:
        thread.close()


@pytest.fixture(params=["ottla", pytest.param("apache", marks=pytest.mark.slow)])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    with ExitStack() as closing:
        if request.param == "ottla":
            servers = closing.enter_context(Broker(SETTINGS)).bootstrap_servers
        else:
            servers = closing.enter_context(request.getfixturevalue("apache_kafka").start_server(SETTINGS)).bootstrap
        make_topic(servers, TOPIC, 1, COMPACTED | HELD_BACK)
        yield servers


class Paused:
    """What a paused registry has read, and writes when it goes on."""

    def __init__(self, servers: str) -> None:
        settings = admin_settings(servers, config={}, keywords={})
        self._clusters = (
            open_cluster(real_client_world(), settings, "paused-reader"),
            open_cluster(real_client_world(), settings, "paused"),
        )
        self.read: Read = []
        self._topic = SchemasTopic(*self._clusters, lambda key, value, counts: self.read.append((key, value, counts)))

    async def open(self) -> None:
        await self._topic.open()

    async def write_stray(self) -> None:
        """Register another schema as the version and id that are given away meanwhile."""
        async with asyncio.timeout(HANG_S):
            while await self._is_remembered():
                await asyncio.sleep(0.05)
        content = Content("AVRO", OTHER.text)
        await self._topic._produce(self._topic._batch([(KEY, schema_value(Stored("s", 1, 1, content)))]))

    async def _is_remembered(self) -> bool:
        producers = (await describe_producers(self._clusters[1], [PARTITION]))[PARTITION]
        return any(each.producer_id == PRODUCER_ID for each in producers)

    def close(self) -> None:
        for each in self._clusters:
            each.close()


def written(servers: str) -> Read:
    """What is in the topic under the key."""

    async def read() -> Read:
        paused = Paused(servers)
        try:
            await paused.open()
        finally:
            paused.close()
        return [each for each in paused.read if each[0] == KEY]

    return asyncio.run(read())


def leave_stray(servers: str, meanwhile: Callable[[], None]) -> None:
    """Have a registry read, run `meanwhile`, and have the registry write a record that does not count."""

    async def run() -> None:
        paused = Paused(servers)
        try:
            await paused.open()
            await asyncio.to_thread(meanwhile)
            await paused.write_stray()
        finally:
            paused.close()

    asyncio.run(run())


def compact(servers: str, left: Callable[[Read], bool]) -> None:
    """Let compaction begin, and roll segments by records that belong to nobody, until it has left what is wanted."""
    with Admin(servers) as admin:
        admin.alter_configs({("topic", TOPIC): dict.fromkeys(HELD_BACK)}).raise_first()
    deadline = time.monotonic() + HANG_S
    with Producer(servers) as producer:
        while not left(found := written(servers)):
            assert time.monotonic() < deadline, found
            producer.send(TOPIC, None, key=b'{"keytype":"NOOP","magic":0}').result(HANG_S)
            time.sleep(0.1)  # a new segment, please: segment.ms


def register(servers: str) -> None:
    with registry(servers) as client:
        assert client.register("s", COUNTED).id == 1


def check_served(client: SchemaRegistry) -> None:
    found = client.version("s", 1)
    assert (found.id, found.schema.text) == (1, client.schema(1).text)
    assert '"R1"' in found.schema.text


def is_repaired_and_compacted(found: Read) -> bool:
    return len(found) == 1 and found[0][2] is True and b"R1" in (found[0][1] or b"")


def test_a_registry_that_reads_a_stray_writes_the_counted_schema_again(servers: str) -> None:
    with registry(servers) as client:
        leave_stray(servers, lambda: client.register("s", COUNTED) and None)
        compact(servers, is_repaired_and_compacted)
        check_served(client)
    with registry(servers) as client:
        check_served(client)
        assert client.register("t", OTHER).id == 2


def test_a_registry_that_starts_behind_a_stray_repairs_before_it_answers_a_write(servers: str) -> None:
    leave_stray(servers, lambda: register(servers))
    assert [counts for _, _, counts in written(servers)] == [True, False]
    with registry(servers) as client, registry(servers) as other:
        check_served(client)
        assert client.register("t", OTHER).id == 2
        assert [counts for _, _, counts in written(servers)] == [True, False, True, True]  # once, and not by both
        check_served(other)
    compact(servers, is_repaired_and_compacted)
    with registry(servers) as client:
        check_served(client)


def test_a_schema_that_was_lost_is_missing_and_its_id_is_not_given_away(servers: str) -> None:
    """Nobody read the stray before compaction dropped the schema that counts."""
    leave_stray(servers, lambda: register(servers))
    compact(servers, lambda found: len(found) == 1)
    with registry(servers) as client:
        with pytest.raises(RegistryRefusedError, match="not found"):
            client.schema(1)
        assert client.subjects() == []
        assert client.register("t", OTHER).id == 2


def test_a_record_of_another_producer_that_takes_an_id_covers_nothing(servers: str) -> None:
    register(servers)
    with Producer(servers) as producer:
        value = schema_value(Stored("s", 1, 1, Content("AVRO", OTHER.text)))
        producer.send(TOPIC, value, key=KEY).result(HANG_S)
    with registry(servers) as client:
        check_served(client)
        compact(servers, is_repaired_and_compacted)
    with registry(servers) as client:
        check_served(client)


def test_only_a_registry_that_may_write_repairs(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another member of its group leads it waits; when it leads, it repairs without a request."""
    monkeypatch.setattr("ottla.registry.service.REPAIR_AGAIN_S", 0.01)
    leave_stray(servers, lambda: register(servers))
    looked = 0
    leads = False

    def may_write() -> bool:
        nonlocal looked
        looked += 1
        return leads

    async def run() -> None:
        nonlocal leads
        settings = admin_settings(servers, config={}, keywords={})
        clusters = [open_cluster(real_client_world(), settings, name) for name in ("reader", "writer")]
        registry = Registry(clusters[0], clusters[1])
        registry.may_write = may_write
        await registry.start()
        try:
            async with asyncio.timeout(HANG_S):
                while looked < 3:
                    await asyncio.sleep(0.01)
                assert registry.state.covered == {("SCHEMA", "s", 1)}
                leads = True
                while registry.state.covered:
                    await asyncio.sleep(0.01)
        finally:
            await registry.close()
            for each in clusters:
                each.close()

    asyncio.run(run())
    assert [counts for _, _, counts in written(servers)] == [True, False, True, True]
