"""The controller under Hypothesis: any requests in any order, brokers that register, fall silent, crash and shut down.

After every step, replaying the log gives the same image, so does its snapshot, and the invariants of partitions hold
(tests/model/controller_model.py). A refused request writes nothing.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.model.controller_model import ControllerChecks
from tests.support.cases.controller_refusals import codes_of
from tests.support.cases.examples import examples
from tests.support.nodes.controller_cluster import ControllerCluster, directory_of

from ottla.errors import KafkaError
from ottla.ids import ZERO_UUID
from ottla.metadata.controller.brokers import broker_heartbeat, fence_silent_brokers, register_broker, unregister_broker
from ottla.metadata.controller.controllers import register_controller
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.directories import assign_directory
from ottla.metadata.controller.elections import elect_leaders
from ottla.metadata.controller.features import update_features
from ottla.metadata.controller.producer_ids import allocate_producer_ids
from ottla.metadata.controller.topics import create_partitions, create_topics, delete_topics
from ottla.metadata.features import SUPPORTED_FEATURES
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest, Listener
from ottla.wire.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.metadata_records import ConfigRecord
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

BROKERS = st.integers(1, 4)
NAMES = st.sampled_from(["first", "second", "a", "b", "c.d", "c_d", "e e"])
REPLICAS = st.lists(st.integers(1, 5), max_size=3)
COUNTS = st.sampled_from([1, 2, 3, 3, 2, 1, -1, 4, 0, -2])
SELDOM = st.sampled_from([False, False, False, True])
CONFIGS = st.sampled_from([("min.insync.replicas", "2"), ("unclean.leader.election.enable", "true"), ("retention.ms", "x")])


class ControllerMachine(RuleBasedStateMachine):
    """A cluster of up to four brokers with two directories each."""

    cluster: ControllerCluster
    checks: ControllerChecks

    @initialize(version=st.sampled_from([7, 11, 12, 16, 17, 22, 23, 26, 29, 30]), seed=st.integers(0, 1000))
    def begin(self, version: int, seed: int) -> None:
        self.cluster = ControllerCluster(version, seed=seed)
        self.checks = ControllerChecks(self.cluster)
        for broker_id in (1, 2, 3):
            self._register(broker_id, is_clean=False)
            self.heartbeat(broker_id, False, False, False, False)
        self.create(["first"], 3, 2, None, False)
        self.create(["second"], 2, 3, ("min.insync.replicas", "2"), False)

    @property
    def state(self) -> Any:
        return self.cluster.state

    def decide(self, decide: Callable[[], Decision[Any]]) -> Any:
        """Apply a decision; None if the whole request was refused."""
        before = len(self.cluster.log)
        try:
            response = self.cluster.apply(decide())
        except KafkaError:
            assert len(self.cluster.log) == before
            return None
        return response

    def ask(self, decide: Callable[[], Decision[Any]]) -> None:
        """A request of many parts: if all are refused, nothing is written."""
        before = len(self.cluster.log)
        response = self.decide(decide)
        if response is not None:
            codes = codes_of(response, {})
            parts = {what: code for what, code in codes.items() if what} or codes
            if all(parts.values()):
                assert len(self.cluster.log) == before, f"refused with {codes}, but records were written"

    # -- brokers

    def _register(self, broker_id: int, is_clean: bool) -> None:
        existing = self.state.image.cluster.brokers.get(broker_id)
        request = self.cluster.registration(
            broker_id,
            rack=["x", "y", None][broker_id % 3],
            log_dirs=[directory_of(broker_id), directory_of(broker_id, 1)],
            previous_broker_epoch=existing.epoch if is_clean and existing is not None else -1,
        )
        self.decide(lambda: register_broker(self.state, request, self.cluster.now_ms))

    @rule(broker_id=BROKERS, is_clean=st.booleans())
    def restart(self, broker_id: int, is_clean: bool) -> None:
        """A new incarnation; the session of the last one may be over or not."""
        self.cluster.now_ms += 20_000 if is_clean else 0
        self._register(broker_id, is_clean)

    @rule(broker_id=BROKERS, wants_fence=SELDOM, wants_shutdown=SELDOM, lags=SELDOM, lost=SELDOM)
    def heartbeat(self, broker_id: int, wants_fence: bool, wants_shutdown: bool, lags: bool, lost: bool) -> None:
        broker = self.state.image.cluster.brokers.get(broker_id)
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=0 if broker is None else broker.epoch,
            current_metadata_offset=self.state.next_offset - (50 if lags else 1),
            want_fence=wants_fence,
            want_shut_down=wants_shutdown,
            offline_log_dirs=[directory_of(broker_id, 1)] if lost else [],
        )
        self.cluster.now_ms += 100
        self.decide(lambda: broker_heartbeat(self.state, request, self.cluster.now_ms))

    @rule(broker_id=BROKERS)
    def serve_on(self, broker_id: int) -> None:
        """The common heartbeat: unfenced, caught up, not shutting down."""
        self.heartbeat(broker_id, False, False, False, False)

    @rule()
    def all_come_back(self) -> None:
        self.cluster.now_ms += 20_000
        for broker_id in (1, 2, 3, 4):
            broker = self.state.image.cluster.brokers.get(broker_id)
            if broker is None or broker.fenced or broker.in_controlled_shutdown:
                self._register(broker_id, is_clean=broker_id % 2 == 0)
            self.serve_on(broker_id)

    @rule(silent_ms=st.sampled_from([100, 5000, 10_000]))
    def time_passes(self, silent_ms: int) -> None:
        self.cluster.now_ms += silent_ms
        while self.decide(lambda: fence_silent_brokers(self.state, self.cluster.now_ms)).fenced:
            pass

    @rule(broker_id=BROKERS)
    def unregister(self, broker_id: int) -> None:
        self.decide(lambda: unregister_broker(self.state, UnregisterBrokerRequest(broker_id=broker_id), self.cluster.now_ms))

    @rule(controller_id=st.integers(1, 3))
    def controller(self, controller_id: int) -> None:
        listeners = [Listener(name="CONTROLLER", host="host", port=9093, security_protocol=0)]
        request = ControllerRegistrationRequest(controller_id=controller_id, listeners=listeners)
        self.decide(lambda: register_controller(self.state, request, self.cluster.now_ms))

    # -- topics

    @rule(
        names=st.lists(NAMES, min_size=1, max_size=3),
        partitions=COUNTS,
        replication_factor=COUNTS,
        config=st.none() | CONFIGS,
        only_validate=SELDOM,
    )
    def create(
        self, names: list[str], partitions: int, replication_factor: int, config: tuple[str, str] | None, only_validate: bool
    ) -> None:
        configs = [CreatableTopicConfig(name=config[0], value=config[1])] if config is not None else []
        topics = [
            CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor, configs=configs)
            for name in names
        ]
        request = CreateTopicsRequest(topics=topics, validate_only=only_validate)
        before = len(self.cluster.log)
        self.ask(lambda: create_topics(self.state, request, self.cluster.now_ms))
        assert not only_validate or len(self.cluster.log) == before

    @rule(name=NAMES, assignments=st.lists(st.tuples(st.integers(0, 2), REPLICAS), min_size=1, max_size=3))
    def create_assigned(self, name: str, assignments: list[tuple[int, list[int]]]) -> None:
        wanted = [CreatableReplicaAssignment(partition_index=at, broker_ids=brokers) for at, brokers in assignments]
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=wanted)
        self.ask(lambda: create_topics(self.state, CreateTopicsRequest(topics=[topic]), self.cluster.now_ms))

    @rule(names=st.lists(NAMES, max_size=2), by_id=st.booleans())
    def delete(self, names: list[str], by_id: bool) -> None:
        def wanted(name: str) -> DeleteTopicState:
            topic = self.state.image.topics.by_name.get(name)
            if by_id:
                return DeleteTopicState(name=None, topic_id=ZERO_UUID if topic is None else topic.id)
            return DeleteTopicState(name=name)

        request = DeleteTopicsRequest(topics=[wanted(name) for name in names])
        self.ask(lambda: delete_topics(self.state, request, self.cluster.now_ms))

    @rule(
        names=st.lists(NAMES, min_size=1, max_size=2),
        count=st.integers(0, 6),
        assigned=st.none() | st.lists(REPLICAS, max_size=2),
    )
    def grow(self, names: list[str], count: int, assigned: list[list[int]] | None) -> None:
        assignments = None if assigned is None else [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assigned]
        topics = [CreatePartitionsTopic(name=name, count=count, assignments=assignments) for name in names]
        self.ask(lambda: create_partitions(self.state, CreatePartitionsRequest(topics=topics), self.cluster.now_ms))

    @rule(name=st.none() | NAMES, numbers=st.lists(st.integers(0, 3), max_size=3), election_type=st.integers(0, 1))
    def elect(self, name: str | None, numbers: list[int], election_type: int) -> None:
        wanted = None if name is None else [TopicPartitions(topic=name, partitions=numbers)]
        request = ElectLeadersRequest(election_type=election_type, topic_partitions=wanted)
        self.ask(lambda: elect_leaders(self.state, request, self.cluster.now_ms))

    @rule(broker_id=BROKERS, name=NAMES, number=st.integers(0, 2), directory=st.integers(0, 1))
    def assign(self, broker_id: int, name: str, number: int, directory: int) -> None:
        topic = self.state.image.topics.by_name.get(name)
        topic_id = ZERO_UUID if topic is None else topic.id
        self.decide(lambda: assign_directory(self.state, broker_id, topic_id, number, directory_of(broker_id, directory)))

    @rule(name=NAMES, config=CONFIGS, removes=st.booleans())
    def configure(self, name: str, config: tuple[str, str], removes: bool) -> None:
        if name in self.state.image.topics.by_name and config[1] != "x":
            value = None if removes else config[1]
            self.cluster.append([ConfigRecord(resource_type=2, resource_name=name, name=config[0], value=value)])

    # -- features and ids

    @rule(
        feature=st.sampled_from([*SUPPORTED_FEATURES, "share.version"]),
        level=st.integers(0, 30),
        upgrade_type=st.integers(0, 3),
        only_validate=st.booleans(),
    )
    def update(self, feature: str, level: int, upgrade_type: int, only_validate: bool) -> None:
        update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
        request = UpdateFeaturesRequest(feature_updates=[update], validate_only=only_validate)
        self.ask(lambda: update_features(self.state, request, self.cluster.now_ms))

    @rule(broker_id=BROKERS, is_stale=st.booleans())
    def allocate(self, broker_id: int, is_stale: bool) -> None:
        broker = self.state.image.cluster.brokers.get(broker_id)
        epoch = -1 if broker is None or is_stale else broker.epoch
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
        before = self.state.image.next_producer_id
        block = self.decide(lambda: allocate_producer_ids(self.state, request, self.cluster.now_ms))
        if block is not None:
            assert (block.producer_id_start, self.state.image.next_producer_id) == (before, before + block.producer_id_len)
        else:
            assert self.state.image.next_producer_id == before

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "checks"):
            self.checks.check()


TestControllerMachine = ControllerMachine.TestCase
TestControllerMachine.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
