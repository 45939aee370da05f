"""The course's story: three nodes, three replicas, a producer with acks=all, a killed leader, and nothing lost or doubled."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from tools.demo.cluster.load import Load, compare, read_all
from tools.demo.cluster.nodes import NODES, Nodes
from tools.demo.cluster.picture import draw
from tools.demo.processes import DemoFailed

from ottla.client.admin.sync import Admin
from ottla.client.admin.topic_descriptions import PartitionDescription
from ottla.client.admin.topics import NewTopic
from ottla.env.real.randomness import RealRandomness
from ottla.errors import KafkaError
from ottla.ids import uuid_text

TOPIC = "orders"
ASSIGNMENT = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
WITHIN_S = 90
LOOK_EVERY_S = 0.05

Partitions = Sequence[PartitionDescription]


class Story:
    """The steps, in order. `records`: how many the producer sends before each of them."""

    def __init__(self, folder: Path, records: int) -> None:
        self._records = records
        self._nodes = Nodes(folder)
        self._admin: Admin | None = None
        self._load: Load | None = None
        self._killed = 0

    def run(self) -> None:
        began_s = time.monotonic()
        # The clients' warnings about the node that is gone would be printed between the steps.
        logging.getLogger("ottla").addHandler(logging.NullHandler())
        try:
            self.start()
            self.create()
            self.produce()
            self.kill_leader()
            self.restart()
            self.count()
            click.echo(f"\n   {time.monotonic() - began_s:.0f} s in all")
        finally:
            if self._load is not None:
                self._load.abandon()
            if self._admin is not None:
                self._admin.close()
            self._nodes.end()

    # Steps

    def start(self) -> None:
        step("1. Three nodes, each broker and controller")
        for node in NODES:
            command(f"ottla server start server-{node}.properties")
        began_s = time.monotonic()
        self._nodes.format(uuid_text(RealRandomness().new_uuid()))
        self._nodes.start(*NODES)
        self._admin = Admin(self._nodes.bootstrap_servers, request_timeout_ms=5_000)
        self.until(lambda: len(self.up()) == len(NODES), "three brokers to be up")
        tell(f"up after {time.monotonic() - began_s:.1f} s, at {self._nodes.bootstrap_servers}")

    def create(self) -> None:
        step("2. A topic with three partitions, each on three nodes")
        command(f"ottla topics create {TOPIC} --partitions 3 --replication-factor 3")
        self.admin.create_topics([NewTopic(TOPIC, replicas=ASSIGNMENT)]).raise_first()
        self.until(lambda: self.in_sync(3), "all replicas to be in sync")
        self.show()

    def produce(self) -> None:
        step("3. A producer with acks=all: a record counts when every replica in sync has it")
        self._load = Load(self._nodes.bootstrap_servers, TOPIC, len(ASSIGNMENT))
        self._load.start()
        self.await_more()
        tell(f"{self._load.acknowledged:,} records acknowledged, and it goes on sending")

    def kill_leader(self) -> None:
        load = self.load
        leader = self.partitions()[0].leader
        assert leader is not None
        step(f"4. Kill the node that leads {TOPIC}-0, without warning")
        command(f"kill -9 (node {leader})")
        before = load.acknowledged
        killed_s = time.monotonic()
        self._nodes.kill(leader)
        self.until(lambda: self.partitions()[0].leader not in (None, leader), "a new leader")
        tell(f"{TOPIC}-0 is led by node {self.partitions()[0].leader} after {time.monotonic() - killed_s:.1f} s")
        self.until(lambda: self.in_sync(2), "two replicas in sync")
        self.show(without=leader)
        self.await_more()
        tell(f"the producer waited and went on: {load.acknowledged - before:,} more acknowledged, {len(load.failures)} failed")
        self._killed = leader

    def restart(self) -> None:
        step("5. The node comes back, fetches what it missed, and is in sync again")
        command(f"ottla server start server-{self._killed}.properties")
        began_s = time.monotonic()
        self._nodes.start(self._killed)
        self.until(lambda: self.in_sync(3), "all replicas to be in sync")
        tell(f"in sync after {time.monotonic() - began_s:.1f} s")
        command("ottla elect-leaders --all")
        self.admin.elect_leaders("preferred").raise_first()
        self.until(lambda: all(each.leader == each.replicas[0] for each in self.partitions()), "the preferred leaders")
        self.show()
        self.await_more()

    def count(self) -> None:
        step("6. Count")
        load = self.load
        load.stop()
        found = compare(load.sent, read_all(self._nodes.bootstrap_servers, TOPIC, len(ASSIGNMENT)))
        tell(f"sent {load.sent:,}, acknowledged {load.acknowledged:,}, failed {len(load.failures)}, read {found.records:,}")
        tell(f"the longest time without an acknowledgement was {load.longest_wait_s:.1f} s")
        if load.failures or found.lost or found.doubled or not found.is_in_order:
            raise DemoFailed(
                f"{len(load.failures)} sends failed ({load.failures[:1]}), {len(found.lost)} records are lost, "
                f"{len(found.doubled)} doubled{'' if found.is_in_order else ', and not in order'}: please report this"
            )
        click.secho("   nothing lost, nothing doubled, all in order", fg="green", bold=True)

    # What the cluster says

    @property
    def admin(self) -> Admin:
        assert self._admin is not None
        return self._admin

    @property
    def load(self) -> Load:
        assert self._load is not None
        return self._load

    def up(self) -> set[int]:
        return set(self.admin.describe_cluster().nodes)

    def partitions(self) -> Partitions:
        return self.admin.describe_topics([TOPIC])[TOPIC].partitions

    def in_sync(self, count: int) -> bool:
        return all(len(each.isr) == count and each.leader is not None for each in self.partitions())

    def show(self, without: int | None = None) -> None:
        for line in draw(TOPIC, self.partitions(), NODES, self.up() - {without}):
            click.echo(f"   {line}")

    def await_more(self) -> None:
        """Wait until the producer has sent some more."""
        goal = self.load.acknowledged + self._records
        self.until(lambda: bool(self.load.failures) or self.load.acknowledged >= goal, f"{self._records} more records")

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait for what is to come; a node that ends by itself, or takes too long, is a failure."""
        deadline_s = time.monotonic() + WITHIN_S
        while True:
            try:
                if is_so():
                    return
            except KafkaError:
                pass  # a node that was asked is not there: ask another
            self._nodes.check()
            if time.monotonic() > deadline_s:
                raise DemoFailed(f"waited {WITHIN_S} s for {what}, in vain")
            time.sleep(LOOK_EVERY_S)  # metadata can only be asked for again


def step(text: str) -> None:
    click.secho(f"\n{text}", bold=True)


def command(text: str) -> None:
    click.echo(f"   {click.style('$', dim=True)} {text}")


def tell(text: str) -> None:
    click.echo(f"   {text}")
