"""Coordinators fail over from Apache brokers to Ottla brokers and back: groups keep their offsets, transactions are whole."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pytest
from tests.support.peers.leaders import await_in_sync, await_leader, lead, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla import Admin, Consumer, Producer
from ottla.errors import KafkaError
from ottla.ids import TopicPartition

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

CONTROLLER, OTTLA, APACHE = 1, 2, 3
BROKERS = {OTTLA: Part("ottla", "broker"), APACHE: Part("apache", "broker")}
PARTITIONS = {0: [OTTLA, APACHE], 1: [APACHE, OTTLA]}
INTERNAL = ("__consumer_offsets", "__transaction_state")
REPLICATED = {"offsets.topic.replication.factor": 2, "transaction.state.log.replication.factor": 2}
PROTOCOLS = ("classic", "consumer")
KILLS = 4
PATIENT = {**QUICK, "max_block_ms": 150_000, "delivery_timeout_ms": 150_000}


class Worker:
    """Repeats a step in a thread until the block is left; a step that raises ends it and fails the test."""

    def __init__(self) -> None:
        self.done = 0
        self.failure: BaseException | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def open(self) -> None: ...

    def step(self) -> None: ...

    def close(self) -> None: ...

    def _run(self) -> None:
        try:
            self.open()
            while not self._is_over.is_set():
                self.step()
            self.close()
        except BaseException as failure:
            self.failure = failure

    def await_more(self, count: int) -> None:
        goal = self.done + count
        await_true(lambda: self.failure is not None or self.done >= goal, f"{count} more steps of {self}")
        if self.failure is not None:
            raise self.failure

    def __enter__(self) -> "Worker":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join(HANG_S)
        if error is None and self.failure is not None:
            raise self.failure


class Pairs(Worker):
    """Transactions, each with the same number in both partitions and as the offset of a group. Every fifth is aborted."""

    def __init__(self, bootstrap: str, name: str) -> None:
        super().__init__()
        self._bootstrap, self._name = bootstrap, name
        self.committed: list[str] = []
        self._number = 0

    def open(self) -> None:
        self._producer = Producer(self._bootstrap, transactional_id=self._name, **PATIENT)
        self._producer.init_transactions()
        self._admin = Admin(self._bootstrap, **QUICK)

    def step(self) -> None:
        self._number += 1
        value = f"{self._name} {self._number}"
        self._producer.begin_transaction()
        for partition in PARTITIONS:
            self._producer.send("pairs", value.encode(), partition=partition)
        self._producer.send_offsets_to_transaction({("pairs", 0): self._number}, self._name)
        if self._number % 5 == 0:
            self._producer.abort_transaction()
        else:
            self._producer.commit_transaction()
            self.committed.append(value)
        self.done += 1

    def close(self) -> None:
        self._producer.close()
        self._admin.close()


class Reader(Worker):
    """A member of a group, which commits what it has read after each poll; a commit that was answered must stay."""

    def __init__(self, bootstrap: str, protocol: str) -> None:
        super().__init__()
        self._bootstrap, self._protocol = bootstrap, protocol
        self.read: set[tuple[int, int]] = set()
        self.answered: dict[TopicPartition, int] = {}

    def open(self) -> None:
        self._consumer = Consumer(
            self._bootstrap,
            group_id=self._protocol,
            group_protocol=self._protocol,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            **QUICK,
        )
        self._consumer.subscribe(["pairs"])

    def step(self) -> None:
        records = self._consumer.poll(0.2)
        if not records:
            return
        ends = {TopicPartition("pairs", each.partition): each.offset + 1 for each in records}
        self.read.update((each.partition, each.offset) for each in records)
        try:
            self._consumer.commit(ends)
        except KafkaError as error:
            print(f"{self._protocol}: a commit was refused: {error}")
            return
        for each, offset in ends.items():
            assert offset >= self.answered.get(each, 0), f"{self._protocol} went back from {self.answered[each]} to {offset}"
        self.answered.update(ends)
        self.done += 1

    def close(self) -> None:
        self._consumer.close()


def offsets_of(admin: Admin, group: str) -> dict[TopicPartition, int]:
    found = admin.list_consumer_group_offsets([group], require_stable=True)[group]
    return {each: committed.offset for each, committed in found.items() if committed is not None}


def check_offsets(admin: Admin, reader: Reader, group: str) -> None:
    """No offset is lower than one whose commit was answered before."""
    answered = dict(reader.answered)

    def found() -> bool:
        try:
            offsets = offsets_of(admin, group)
        except KafkaError as error:
            print(error)
            return False
        for each, offset in answered.items():
            assert offsets.get(each, -1) >= offset, f"{group} has {offsets}, and was answered {answered}"
        return True

    await_true(found, f"the offsets of {group}")


def committed_values(bootstrap: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {partition: [] for partition in PARTITIONS}
    partitions = [TopicPartition("pairs", partition) for partition in PARTITIONS]
    with Consumer(bootstrap, auto_offset_reset="earliest", isolation_level="read_committed", **QUICK) as consumer:
        consumer.assign(partitions)

        def at_end() -> bool:
            for record in consumer.poll(0.2):
                found[record.partition].append((record.value or b"").decode())
            ends = consumer.end_offsets(partitions)
            return all(consumer.position(each) >= ends[each] for each in partitions)

        await_true(at_end, "all committed records to be read")
    return found


def change_coordinator(cluster: MixedCluster, admin: Admin, victim: int, then: Callable[[], None]) -> None:
    """Kill the coordinator of everything; `then` runs while it is away."""
    for topic in INTERNAL:
        lead(admin, topic, 0, victim)
    then()
    cluster.kill(victim)
    for topic in INTERNAL:
        await_leader(admin, topic, 0, OTTLA + APACHE - victim)
    then()
    cluster.start(victim)
    for topic in ("pairs", *INTERNAL):
        await_in_sync(admin, topic)


@pytest.mark.parametrize("controller", ["ottla", "apache"])
def test_coordinators_fail_over_both_ways(controller: str, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    nodes = {CONTROLLER: Part(controller, "controller"), **BROKERS}
    with MixedCluster(apache_kafka, tmp_path, nodes, REPLICATED) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        bootstrap = cluster.bootstrap
        with Admin(bootstrap, **QUICK) as admin:
            make_replicated(admin, "pairs", PARTITIONS)
            writers = [Pairs(bootstrap, f"writer-{number}") for number in range(2)]
            readers = {protocol: Reader(bootstrap, protocol) for protocol in PROTOCOLS}
            with writers[0], writers[1], readers["classic"], readers["consumer"]:

                def all_go_on() -> None:
                    for writer in writers:
                        writer.await_more(10)
                    for protocol, reader in readers.items():
                        reader.await_more(5)
                        check_offsets(admin, reader, protocol)

                all_go_on()
                for turn in range(KILLS):
                    change_coordinator(cluster, admin, (OTTLA, APACHE)[turn % 2], all_go_on)
                    print(f"turn {turn}: {[each.done for each in writers]}, {[each.done for each in readers.values()]}")
            for writer in writers:
                numbers = offsets_of(admin, writer._name)[TopicPartition("pairs", 0)]
                assert writer.committed[-1] == f"{writer._name} {numbers}"
            found = committed_values(bootstrap)
            for writer in writers:
                for partition, values in found.items():
                    mine = [value for value in values if value.startswith(writer._name)]
                    assert mine == writer.committed, f"{writer._name} in partition {partition}"
            for topic, partition in (("pairs", 0), ("pairs", 1), *((topic, 0) for topic in INTERNAL)):
                assert cluster.await_equal(topic, partition, OTTLA, APACHE)
