"""A node put together by roles, on a simulated network and disk."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

import pytest
from tests.support.nodes.images import context_of, image_of

from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.channel.links import Address, ControllerLinks
from ottla.broker.channel.remote import RemoteChannel
from ottla.broker.formatting import FormatOptions, format_directories, format_if_new
from ottla.broker.node import Node
from ottla.broker.node_links import NodeLinks
from ottla.broker.requests.context import future_of
from ottla.broker.services import NodeServices, Services
from ottla.config.broker import BrokerConfig
from ottla.env import World
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import DIRECTORY_LOST, Uuid
from ottla.link import Link
from ottla.metadata.features import DIRECTORIES_FROM, METADATA_VERSION, METADATA_VERSION_MAX, SUPPORTED_FEATURES
from ottla.sim.disk import MemoryDisk
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork
from ottla.sim.world import LoopClock, SeededRandomness
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

CONTROLLER = Address(1, "here", 9093)
BROKER_LISTENER, CONTROLLER_LISTENER = "PLAINTEXT://here:9092", "CONTROLLER://here:9093"


def settings(roles: str) -> dict[str, str]:
    listeners = [BROKER_LISTENER] * ("broker" in roles) + [CONTROLLER_LISTENER] * ("controller" in roles)
    return {
        "process.roles": roles,
        "node.id": "1",
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "here:9093",
        "log.dirs": "/data",
    }


class Stage:
    """One machine with a disk, and a network."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.network = SimNetwork()
        self.clock = LoopClock(loop)
        self.disk = MemoryDisk(Random(1), self.clock)

    async def start(self, roles: str) -> Node:
        world = World(self.disk, self.clock, self.network.host("here"), SeededRandomness(Random(2)), None)
        await format_if_new(world, settings(roles))
        return await Node.start(world, settings(roles), hostname="here")


def on_stage(work: Callable[[Stage], Awaitable[None]]) -> None:
    loop = VirtualLoop()

    async def run() -> None:
        await work(Stage(loop))

    loop.run(run())


@pytest.mark.parametrize("roles", ["broker,controller", "controller"])
def test_node_says_why_it_is_not_ready(roles: str) -> None:
    async def work(stage: Stage) -> None:
        node = await stage.start(roles)
        assert (node.failure(), node.unready()) == (None, [])
        await node.stop()
        assert (node.failure(), node.unready()) == (None, ["the node is stopping"])
        node.broken.set_result(OttlaError("all log directories have failed"))
        assert (node.failure(), node.unready()) == ("all log directories have failed", ["all log directories have failed"])

    on_stage(work)


def registration(node: Node) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=7,
        cluster_id=node.cluster_id,
        incarnation_id=Uuid(b"i" * 16),
        listeners=[Listener(name="PLAINTEXT", host="there", port=9092)],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        log_dirs=[Uuid(b"directory of 7..")],
    )


def test_controller_alone_serves_brokers_of_other_machines() -> None:
    async def work(stage: Stage) -> None:
        node = await stage.start("controller")
        services = node.pipeline.services
        assert services is not None
        assert not isinstance(services, Services), "it has no partitions and no coordinators"
        assert node.bootstrap_servers == "here:9093"
        links = ControllerLinks(NodeLinks(stage.network.host("there")), 7)
        channel = RemoteChannel(links, lambda: CONTROLLER)
        epoch = (await channel.call(registration(node))).broker_epoch
        heard = await channel.call(
            BrokerHeartbeatRequest(broker_id=7, broker_epoch=epoch, current_metadata_offset=services.loader.published_offset)
        )
        assert not heard.is_fenced
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name="t", num_partitions=3, replication_factor=1)], timeout_ms=9000
        )
        created = await channel.forward(
            ForwardedRequest.of(context_of(image_of([], {}), request.KEY, 7), request), request.timeout_ms
        )
        assert [topic.error_code for topic in created.topics] == [ErrorCode.NONE]
        assert services.metadata.image.topics.by_name["t"].partitions[2].replicas == (7,)
        links.close()
        await node.stop()
        assert not node.broken.done()

        node = await stage.start("controller")
        services = node.pipeline.services
        assert services is not None
        assert "t" in services.metadata.image.topics.by_name, "what it decided is there after a restart"
        await node.stop()

    on_stage(work)


def test_broker_and_controller_in_one_node() -> None:
    async def work(stage: Stage) -> None:
        node = await stage.start("broker,controller")
        assert node.bootstrap_servers == "here:9092"
        assert node.services.controller.is_active
        assert node.services.metadata.image.cluster.brokers[1].fenced is False
        link = await Link.connect(stage.network.host("there"), "here", 9092)
        created = await link.request(
            CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
        )
        assert created.topics[0].error_code == ErrorCode.NONE
        found = await link.request(MetadataRequest(topics=None))
        assert [topic.name for topic in found.topics] == ["t"], "a client that has its answer finds its topic"
        assert node.services.partitions.find("t", 0) is not None
        link.close()
        await node.stop()

    on_stage(work)


def test_registration_gets_log_directories_when_metadata_version_is_raised() -> None:
    async def work(stage: Stage) -> None:
        texts = {**settings("broker,controller"), "log.dirs": "/data,/more"}
        world = World(stage.disk, stage.clock, stage.network.host("here"), SeededRandomness(Random(2)), None)
        old = {"transaction.version": 0, "group.version": 0, "eligible.leader.replicas.version": 0}
        await format_if_new(world, texts, {METADATA_VERSION: DIRECTORIES_FROM - 1, **old})
        node = await Node.start(world, texts, hostname="here")
        before = node.services.metadata.image.cluster.brokers[1]
        assert before.directories == ()
        update = FeatureUpdateKey(feature=METADATA_VERSION, max_version_level=METADATA_VERSION_MAX, upgrade_type=1)
        await node.services.channel.call(UpdateFeaturesRequest(feature_updates=[update]))
        await asyncio.sleep(1)
        ids = sorted(each.directory_id for each in node.services.directories.directories if each.directory_id is not None)
        after = node.services.metadata.image.cluster.brokers[1]
        assert after == before._replace(directories=tuple(ids), cordoned_directories=())
        await node.services.membership.tell_lost(ids[0])
        await node.services.loader.caught_up()
        assert node.services.metadata.image.cluster.brokers[1].directories == (ids[1],)
        await node.stop()

    on_stage(work)


def test_broker_alone_joins_the_cluster_of_another_controller() -> None:
    """A broker follows the quorum of another machine as an observer, registers there, forwards, serves and leaves."""
    loop = VirtualLoop()

    async def run() -> None:
        network, clock, randomness = SimNetwork(), LoopClock(loop), SeededRandomness(Random(3))
        common = {"controller.quorum.voters": "1@here:9093", "controller.quorum.bootstrap.servers": ""}
        texts = {
            "here": settings("controller") | common,
            "there": settings("broker") | common | {"node.id": "2", "listeners": "PLAINTEXT://there:9092"},
        }
        worlds = {name: World(MemoryDisk(Random(1), clock), clock, network.host(name), randomness, None) for name in texts}
        for name, world in worlds.items():
            options = FormatOptions(cluster_id="b3R0bGEtdGVzdHMtMDAwMQ")
            await format_directories(world, BrokerConfig.from_settings(texts[name]), options)
        controller, broker = await asyncio.gather(
            *(Node.start(world, texts[name], hostname=name) for name, world in worlds.items())
        )
        link = await Link.connect(network.host("client"), "there", 9092)
        wanted = [CreatableTopic(name="t", num_partitions=3, replication_factor=1)]
        created = await link.request(CreateTopicsRequest(topics=wanted, timeout_ms=30_000))
        assert [topic.error_code for topic in created.topics] == [ErrorCode.NONE]
        await until(lambda: broker.services.partitions.find("t", 2) is not None)
        found = await link.request(MetadataRequest(topics=None))
        assert [(topic.name, [each.leader_id for each in topic.partitions]) for topic in found.topics] == [("t", [2, 2, 2])]
        assert controller.pipeline.services is not None
        state = controller.pipeline.services.controller.state
        contact_ms = state.sessions.get(2)
        assert contact_ms is not None
        before_ms = contact_ms.contact_ms
        await asyncio.sleep(10)
        assert contact_ms.contact_ms > before_ms, "it sends heartbeats"
        links = ControllerLinks(NodeLinks(network.host("stranger")), 7)
        old_epoch = broker.services.membership.epoch
        forged = BrokerHeartbeatRequest(broker_id=2, broker_epoch=old_epoch, want_shut_down=True)
        await RemoteChannel(links, lambda: CONTROLLER).call(forged)
        await until(lambda: broker.services.membership.epoch > old_epoch and state.image.cluster.brokers[2].is_active)
        assert [each.leader for each in state.image.topics.by_name["t"].partitions.values()] == [2, 2, 2]
        links.close()
        link.close()
        await broker.stop()
        assert state.image.cluster.brokers[2].fenced, "it has left with the controller's permission"
        await controller.stop()

    loop.run(run())


def test_killed_broker_is_fenced_when_its_session_ends() -> None:
    async def work(stage: Stage) -> None:
        node = await stage.start("controller")
        services = node.pipeline.services
        assert services is not None
        links = ControllerLinks(NodeLinks(stage.network.host("there")), 7)
        channel = RemoteChannel(links, lambda: CONTROLLER)
        epoch = (await channel.call(registration(node))).broker_epoch
        heartbeat = BrokerHeartbeatRequest(broker_id=7, broker_epoch=epoch, current_metadata_offset=10**9)
        for _ in range(10):
            await channel.call(heartbeat)
            await asyncio.sleep(3)
        brokers = lambda: services.metadata.image.cluster.brokers  # noqa: E731
        assert not brokers()[7].fenced
        last_s = asyncio.get_running_loop().time() - 3
        await until(lambda: brokers()[7].fenced)
        assert 9 <= asyncio.get_running_loop().time() - last_s <= 10, "broker.session.timeout.ms is 9000"
        links.close()
        await node.stop()

    on_stage(work)


def test_broker_of_the_same_process_stays_unfenced() -> None:
    async def work(stage: Stage) -> None:
        node = await stage.start("broker,controller")
        await asyncio.sleep(60)
        assert not node.services.metadata.image.cluster.brokers[1].fenced
        assert node.services.quorum.end_offset == node.services.loader.published_offset
        await node.stop()

    on_stage(work)


def test_broker_comes_back_after_a_strangers_heartbeat(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody else would bring it back: it sends no heartbeats to a controller in its own process."""

    async def work(stage: Stage) -> None:
        node = await stage.start("broker,controller")
        link = await Link.connect(stage.network.host("there"), "here", 9092)
        topics = [CreatableTopic(name="t", num_partitions=2, replication_factor=1)]
        await link.request(CreateTopicsRequest(topics=topics))
        services = node.services
        channel = RemoteChannel(ControllerLinks(NodeLinks(stage.network.host("there")), 7), lambda: CONTROLLER)

        def is_well() -> bool:
            image = services.metadata.image
            broker, led = image.cluster.brokers.get(1), image.topics.by_name["t"].partitions.values()
            leads = all(each.leader == 1 and each.isr == (1,) for each in led)
            return broker is not None and broker.is_active and broker.epoch == services.membership.epoch and leads

        for fence, shut_down in ((True, False), (False, True), (True, True), (False, True)):
            await until(is_well)
            epoch = services.membership.epoch
            for repeat in range(3):
                forged = BrokerHeartbeatRequest(
                    broker_id=1, broker_epoch=epoch, want_fence=fence, want_shut_down=shut_down, current_metadata_offset=repeat
                )
                with suppress(KafkaError):
                    await channel.call(forged)
            await until(is_well)
            await asyncio.sleep(30)
            assert is_well()
        await channel.call(UnregisterBrokerRequest(broker_id=1))
        await until(is_well)
        assert not node.broken.done()
        link.close()
        await node.stop()

    on_stage(work)
    assert "broker 1 was fenced by a heartbeat that it has not sent" in caplog.text


def test_forged_directory_of_a_replica_is_refused_or_corrected(caplog: pytest.LogCaptureFixture) -> None:
    async def work(stage: Stage) -> None:
        node = await stage.start("broker,controller")
        link = await Link.connect(stage.network.host("there"), "here", 9092)
        topics = [CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
        await link.request(CreateTopicsRequest(topics=topics))
        services = node.services
        topic_id = services.metadata.image.topics.by_name["t"].id
        (own,) = services.metadata.image.cluster.brokers[1].directories
        channel = RemoteChannel(ControllerLinks(NodeLinks(stage.network.host("there")), 7), lambda: CONTROLLER)

        def state() -> tuple[int, tuple[Uuid, ...]]:
            found = services.metadata.image.topics.by_name["t"].partitions[0]
            return found.leader, found.directories

        for directory, error in ((Uuid(b"x" * 16), ErrorCode.LOG_DIR_NOT_FOUND), (DIRECTORY_LOST, ErrorCode.NONE)):
            forged = AssignReplicasToDirsRequest(
                broker_id=1,
                broker_epoch=services.membership.epoch,
                directories=[
                    AssignReplicasToDirsRequestDirectoryData(
                        id=directory,
                        topics=[
                            AssignReplicasToDirsRequestTopicData(
                                topic_id=topic_id,
                                partitions=[AssignReplicasToDirsRequestPartitionData(partition_index=0)],
                            )
                        ],
                    )
                ],
            )
            answer = await channel.call(forged)
            assert answer.directories[0].topics[0].partitions[0].error_code == error
            await asyncio.sleep(0.1)
            await until(lambda: state() == (1, (own,)))
        link.close()
        await node.stop()

    on_stage(work)
    assert "the metadata has t-0 in directory AAAAAAAAAAAAAAAAAAAAAg" in caplog.text


async def until(condition: Callable[[], bool]) -> None:
    """Wait, in virtual time, until `condition` holds."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not come true within 50 s")


VOTERS = ",".join(f"{number}@host{number}:9093" for number in (1, 2, 3))


class Three:
    """Three controllers on three machines."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.network = SimNetwork()
        self.clock = LoopClock(loop)
        self.randomness = SeededRandomness(Random(1))  # one for all lives: no id is drawn twice
        self.disks = {number: MemoryDisk(Random(number), self.clock) for number in (1, 2, 3)}
        self.nodes: dict[int, Node] = {}

    def settings(self, number: int) -> dict[str, str]:
        return settings("controller") | {
            "node.id": str(number),
            "listeners": f"CONTROLLER://host{number}:9093",
            "controller.quorum.voters": VOTERS,
            "controller.quorum.bootstrap.servers": "",
        }

    def world(self, number: int) -> World:
        return World(self.disks[number], self.clock, self.network.host(f"host{number}"), self.randomness, None)

    async def start(self, *numbers: int) -> None:
        for number in numbers:
            config = BrokerConfig.from_settings(self.settings(number))
            options = FormatOptions(cluster_id="b3R0bGEtdGVzdHMtMDAwMQ", ignore_formatted=True)
            await format_directories(self.world(number), config, options)
        started = await asyncio.gather(
            *(Node.start(self.world(number), self.settings(number), hostname=f"host{number}") for number in numbers)
        )
        self.nodes |= dict(zip(numbers, started, strict=True))

    async def active(self) -> Node:
        """The node whose controller is active, once there is one."""
        while True:
            for node in self.nodes.values():
                if self.services(node).controller.is_active:
                    return node
            await asyncio.sleep(0.05)

    def services(self, node: Node) -> NodeServices:
        assert node.pipeline.services is not None
        return node.pipeline.services

    async def stop(self, number: int) -> None:
        await self.nodes.pop(number).stop()


def test_three_controllers_hand_over_what_was_decided() -> None:
    loop = VirtualLoop()

    async def run() -> None:
        three = Three(loop)
        await three.start(1, 2, 3)
        links = ControllerLinks(NodeLinks(three.network.host("there")), 7)

        def leader() -> Address | None:
            for number, node in three.nodes.items():
                if three.services(node).quorum.is_leader:
                    return Address(number, f"host{number}", 9093)
            return None

        channel = RemoteChannel(links, leader)
        first = await three.active()
        epoch = (await channel.call(registration(first))).broker_epoch
        await channel.call(BrokerHeartbeatRequest(broker_id=7, broker_epoch=epoch, current_metadata_offset=10**9))
        for turn in range(3):
            active = await three.active()
            assert sum(three.services(node).controller.is_active for node in three.nodes.values()) == 1
            request = CreateTopicsRequest(
                topics=[CreatableTopic(name=f"t{turn}", num_partitions=1, replication_factor=1)], timeout_ms=60_000
            )
            created = await channel.forward(
                ForwardedRequest.of(context_of(image_of([], {}), request.KEY, 7), request), request.timeout_ms
            )
            assert [topic.error_code for topic in created.topics] == [ErrorCode.NONE]
            await three.stop(active.node_id)
            successor = await three.active()
            assert successor.node_id != active.node_id
            names = sorted(three.services(successor).controller.state.image.topics.by_name)
            assert names == [f"t{number}" for number in range(turn + 1)]
            await three.start(active.node_id)
        links.close()
        for number in (1, 2, 3):
            await three.stop(number)

    loop.run(run())


class ThreeCombined(Three):
    """The same with a broker on each."""

    def settings(self, number: int) -> dict[str, str]:
        return settings("broker,controller") | {
            "node.id": str(number),
            "listeners": f"PLAINTEXT://host{number}:9092,CONTROLLER://host{number}:9093",
            "controller.quorum.voters": VOTERS,
            "controller.quorum.bootstrap.servers": "",
        }


def test_quorum_shares_neither_memory_nor_turns_with_the_clients_of_its_nodes() -> None:
    """What clients hold must not stop an election; and large requests of other controllers do not hold the loop."""
    loop = VirtualLoop()

    async def run() -> None:
        three = ThreeCombined(loop)
        await three.start(1, 2, 3)
        for node in three.nodes.values():
            apart = node._quorum_listeners
            assert apart is not None
            assert apart.memory is not node.listeners.memory
            assert apart.pipeline.scheduler is not node.pipeline.scheduler
            assert apart.pipeline.scheduler.workers is node.pipeline.scheduler.workers
        await asyncio.gather(*(three.stop(number) for number in (1, 2, 3)))

    loop.run(run())


def test_combined_node_joins_the_quorum_of_another_and_takes_over() -> None:
    """Kafka's way to a dynamic quorum: the first node is formatted as --standalone, the others without controllers."""
    loop = VirtualLoop()

    async def run() -> None:
        network, clock, randomness = SimNetwork(), LoopClock(loop), SeededRandomness(Random(3))
        nodes: dict[int, Node] = {}
        for number in (1, 2):
            world = World(MemoryDisk(Random(number), clock), clock, network.host(f"host{number}"), randomness, None)
            texts = settings("broker,controller") | {
                "node.id": str(number),
                "listeners": f"PLAINTEXT://host{number}:9092,CONTROLLER://host{number}:9093",
                "controller.quorum.bootstrap.servers": "host1:9093,host2:9093",
                "controller.quorum.auto.join.enable": "true",
            }
            options = FormatOptions("b3R0bGEtdGVzdHMtMDAwMQ", standalone=number == 1, no_initial_controllers=number == 2)
            await format_directories(world, BrokerConfig.from_settings(texts), options)
            nodes[number] = await Node.start(world, texts, hostname=f"host{number}")
        first, second = nodes[1].services, nodes[2].services
        await until(lambda: second.quorum.voters.ids == (1, 2))
        await asyncio.sleep(20)
        brokers = second.metadata.image.cluster.brokers
        assert [brokers[number].fenced for number in (1, 2)] == [False, False], "both send heartbeats"
        assert first.controller.is_active
        local = first.quorum.replica.local
        removal = RemoveRaftVoterRequest(cluster_id=None, voter_id=1, voter_directory_id=local.directory_id)
        first.quorum.settings = first.quorum.replica.settings = first.quorum.settings._replace(auto_join=False)
        assert (await future_of(first.quorum.ask(removal, 0, "CONTROLLER"))).error_code == 0
        await until(lambda: second.controller.is_active)
        await asyncio.sleep(20)
        assert [second.metadata.image.cluster.brokers[number].fenced for number in (1, 2)] == [False, False]
        link = await Link.connect(network.host("client"), "host1", 9092)
        created = await link.request(
            CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=2, replication_factor=1)], timeout_ms=30_000)
        )
        assert [topic.error_code for topic in created.topics] == [ErrorCode.NONE], "node 1 forwards to node 2"
        link.close()
        await nodes[1].stop()
        await nodes[2].stop()

    loop.run(run())
