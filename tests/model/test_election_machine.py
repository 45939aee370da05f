"""Elections under Hypothesis: brokers of one partition are fenced, return, shut down, crash and are reassigned.

Each broker has two log directories. They fail, are replaced by empty ones, and the partition moves between them.

The leader shrinks and extends the ISR with AlterPartition as a real one does. After every decision the invariants of
tests/model/election_model.py hold: above all, a clean election never loses a committed record.
"""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.model.election_model import TOPIC, ElectionChecks
from tests.support.cases.examples import examples
from tests.support.nodes.controller_cluster import ControllerCluster, directory_of

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import DIRECTORY_UNASSIGNED, Uuid
from ottla.metadata.controller.alter_partition import alter_partition
from ottla.metadata.controller.brokers import unregister_broker
from ottla.metadata.controller.configs import incremental_alter_configs
from ottla.metadata.controller.directories import assign_directory
from ottla.metadata.controller.elections import elect_leaders
from ottla.metadata.controller.partition_change import RECOVERED
from ottla.metadata.controller.reassignments import alter_reassignments
from ottla.metadata.image.cluster import BrokerRegistration
from ottla.metadata.image.image import ResourceType
from ottla.metadata.image.topics import NO_LEADER, PartitionState
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest

ALL = (1, 2, 3, 4)
BROKERS = st.sampled_from(ALL)
REPLICAS = st.permutations(ALL).map(lambda order: list(order[:3]))


class ElectionMachine(RuleBasedStateMachine):
    """One partition with three replicas on four brokers."""

    cluster: ControllerCluster
    checks: ElectionChecks
    disks: dict[int, list[Uuid]]
    """Broker → the directories in its log.dirs."""
    place: dict[int, Uuid]
    """Broker → the directory that its log is in. The metadata may have another one."""
    failed: set[Uuid]
    replacements = 0

    @initialize(
        min_isr=st.integers(1, 3), unclean=st.sampled_from([False, False, True]), elr=st.sampled_from([True, True, False])
    )
    def begin(self, min_isr: int, unclean: bool, elr: bool) -> None:
        self.cluster = ControllerCluster(features=None if elr else {"eligible.leader.replicas.version": 0})
        self.disks = {each: [directory_of(each, 0), directory_of(each, 1)] for each in ALL}
        self.place = {each: self.disks[each][0] for each in ALL}
        self.failed: set[Uuid] = set()
        for broker_id in ALL:
            self.cluster.add_broker(broker_id, log_dirs=self.disks[broker_id])
        configs = {"min.insync.replicas": str(min_isr), "unclean.leader.election.enable": str(unclean).lower()}
        self.cluster.create_topic(TOPIC, assignments=[[1, 2, 3]], configs=configs)
        self.checks = ElectionChecks(self.cluster, min_isr, unclean, elr)
        for broker_id in ALL:
            self.directory_is_reported(broker_id)

    @property
    def partition(self) -> PartitionState:
        return self.cluster.partition(TOPIC)

    def broker(self, broker_id: int) -> BrokerRegistration | None:
        return self.cluster.state.image.cluster.brokers.get(broker_id)

    # -- brokers

    @rule(broker_id=BROKERS)
    def falls_silent(self, broker_id: int) -> None:
        if (broker := self.broker(broker_id)) is not None and not broker.fenced:
            self.cluster.heartbeat(broker_id, want_fence=True)
            self.checks.check()

    @rule(order=st.permutations(ALL), min_isr=st.integers(1, 3))
    def all_fall_silent(self, order: list[int], min_isr: int) -> None:
        """One after the other: several replicas are eligible then, and nobody leads. Then min.insync.replicas changes."""
        for broker_id in order:
            self.falls_silent(broker_id)
        self.min_isr_is_changed(min_isr, of_all=False)

    @rule(broker_id=BROKERS)
    def is_heard_again(self, broker_id: int) -> None:
        if self.broker(broker_id) is not None:
            self.cluster.heartbeat(broker_id)
            self.checks.check()

    @rule(broker_id=BROKERS)
    def shuts_down(self, broker_id: int) -> None:
        if (broker := self.broker(broker_id)) is not None and not broker.fenced:
            for _ in range(2):
                self.cluster.heartbeat(broker_id, want_shut_down=True)
                self.checks.check()

    @rule(broker_id=BROKERS, lost=st.integers(0, 3), is_fenced_first=st.booleans())
    def crashes_and_returns(self, broker_id: int, lost: int, is_fenced_first: bool) -> None:
        if is_fenced_first:
            self.falls_silent(broker_id)
        self.checks.crash(broker_id, lost)
        self._register(broker_id, previous_epoch=-1)

    @rule(broker_id=BROKERS)
    def restarts_cleanly(self, broker_id: int) -> None:
        if (broker := self.broker(broker_id)) is not None:
            self.shuts_down(broker_id)
            self._register(broker_id, broker.epoch)

    def _register(self, broker_id: int, previous_epoch: int) -> None:
        """All disks work again. A directory that failed has no mark of a clean shutdown."""
        if not self.failed.isdisjoint(self.disks[broker_id]):
            previous_epoch = -1
            self.failed.difference_update(self.disks[broker_id])
        self.checks.offline.discard(broker_id)
        self.cluster.state.sessions.forget(broker_id)
        self.cluster.register(broker_id, previous_broker_epoch=previous_epoch, log_dirs=self.disks[broker_id])
        self.checks.check()
        self.cluster.heartbeat(broker_id)
        self.checks.check()

    @rule(broker_id=BROKERS)
    def is_unregistered(self, broker_id: int) -> None:
        if (broker := self.broker(broker_id)) is not None and broker.fenced:
            self.cluster.apply(unregister_broker(self.cluster.state, UnregisterBrokerRequest(broker_id=broker_id), 0))
            self.checks.check()

    # -- log directories

    @rule(broker_id=BROKERS, number=st.integers(0, 1))
    def directory_fails(self, broker_id: int, number: int) -> None:
        lost = self.disks[broker_id][number]
        if (broker := self.broker(broker_id)) is not None and lost in broker.directories and len(broker.directories) > 1:
            self.failed.add(lost)
            if self.place[broker_id] == lost:
                self.checks.offline.add(broker_id)
            self.cluster.heartbeat(broker_id, offline_log_dirs=[lost])
            self.checks.check()

    @rule(broker_id=BROKERS, number=st.integers(0, 1))
    def directory_is_replaced(self, broker_id: int, number: int) -> None:
        """The broker stops cleanly, and returns with an empty disk instead of one of its two."""
        if (broker := self.broker(broker_id)) is None:
            return
        if self.known(broker_id) == DIRECTORY_UNASSIGNED:
            self.directory_is_reported(broker_id)  # Kafka cannot know of a loss that it never heard the place of
        self.shuts_down(broker_id)
        gone = self.disks[broker_id][number]
        is_clean = self.failed.isdisjoint(self.disks[broker_id])
        self.replacements += 1
        self.failed.discard(gone)
        self.disks[broker_id][number] = directory_of(broker_id, 1 + self.replacements)
        if self.place[broker_id] == gone:
            self.place[broker_id] = self.disks[broker_id][1 - number]
            self.checks.held[broker_id] = 0
        self._register(broker_id, broker.epoch if is_clean else -1)

    @rule(broker_id=BROKERS)
    def directory_is_reported(self, broker_id: int) -> None:
        if self.broker(broker_id) is not None and self.known(broker_id) not in (None, self.place[broker_id]):
            self._assign(broker_id, self.place[broker_id])

    @rule(broker_id=BROKERS)
    def partition_moves(self, broker_id: int) -> None:
        """To the other directory of the broker."""
        here, (target,) = self.place[broker_id], [each for each in self.disks[broker_id] if each != self.place[broker_id]]
        is_possible = self.broker(broker_id) is not None and self.known(broker_id) is not None
        if is_possible and self.failed.isdisjoint((here, target)) and self._assign(broker_id, target):
            self.place[broker_id] = target

    def known(self, broker_id: int) -> Uuid | None:
        """The directory in the metadata; None if the broker has no replica."""
        return dict(zip(self.partition.replicas, self.partition.directories, strict=True)).get(broker_id)

    def _assign(self, broker_id: int, directory_id: Uuid) -> bool:
        state = self.cluster.state
        try:
            decision = assign_directory(state, broker_id, self.cluster.topic(TOPIC).id, 0, directory_id)
        except KafkaError:
            assert self.partition.leader == NO_LEADER, "refused although there is a leader to copy from"
            return False
        if self.partition.leader == NO_LEADER and not any(map(self.checks.has_its_directory, self.partition.replicas)):
            self.checks.lose(broker_id)  # no disk is left
        self.cluster.apply(decision)
        self.checks.check()
        return True

    # -- the leader and its followers

    @rule(count=st.integers(1, 3))
    def records_are_committed(self, count: int) -> None:
        for _ in range(count):
            self.checks.commit()

    @precondition(lambda self: hasattr(self, "checks") and self.partition.leader != NO_LEADER)
    @rule(followers=st.sets(BROKERS), is_stale=st.sampled_from([False, False, False, True]))
    def leader_proposes(self, followers: set[int], is_stale: bool) -> None:
        """The leader drops some of its followers from the ISR, and lets others in that have caught up."""
        partition, leader = self.partition, self.partition.leader
        if leader in self.checks.offline:
            return
        followers -= self.checks.offline
        isr = [leader, *(each for each in partition.replicas if each in followers and each != leader)]
        for replica in isr:
            if replica not in partition.isr and not is_stale:
                self.checks.catch_up(replica)
        epochs = {each: (0 if (known := self.broker(each)) is None else known.epoch) for each in isr}
        proposal = AlterPartitionRequestPartitionData(
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            leader_recovery_state=RECOVERED,
            # A stale proposal is one from before a follower's last restart.
            new_isr_with_epochs=[
                BrokerState(broker_id=each, broker_epoch=epoch - (is_stale and each not in partition.isr))
                for each, epoch in epochs.items()
            ],
        )
        topic = AlterPartitionRequestTopicData(topic_id=self.cluster.topic(TOPIC).id, partitions=[proposal])
        request = AlterPartitionRequest(broker_id=leader, broker_epoch=epochs[leader], topics=[topic])
        self.checks.proposed = isr
        (result,) = self.cluster.apply(alter_partition(self.cluster.state, request, 0)).topics[0].partitions
        self.checks.check()
        self.checks.proposed = []
        self._check_answer(result, leader)
        if is_stale and set(isr) - set(partition.isr):
            assert result.error_code == ErrorCode.INELIGIBLE_REPLICA

    def _check_answer(self, result: Any, leader: int) -> None:
        partition = self.partition
        if result.error_code == ErrorCode.NONE:
            assert (result.leader_id, tuple(result.isr)) == (leader, partition.isr)
            assert (result.leader_epoch, result.partition_epoch) == (partition.leader_epoch, partition.partition_epoch)
        elif result.error_code == ErrorCode.NEW_LEADER_ELECTED:
            assert partition.leader != leader
        else:
            assert result.error_code == ErrorCode.INELIGIBLE_REPLICA
            assert partition.leader == leader

    # -- operators

    @rule(is_unclean=st.booleans())
    def election_is_forced(self, is_unclean: bool) -> None:
        if is_unclean and not self.checks.unclean:
            return  # an operator may lose records at any time; this machine is about what happens without one
        self.cluster.apply(elect_leaders(self.cluster.state, ElectLeadersRequest(election_type=int(is_unclean)), 0))
        self.checks.check()

    @rule(min_isr=st.integers(1, 3), of_all=st.booleans())
    def min_isr_is_changed(self, min_isr: int, of_all: bool) -> None:
        """By the topic's setting, or by that of all brokers, which the topic's own hides."""
        eligible, is_led = {*self.partition.elr}, self.partition.leader != NO_LEADER
        config = AlterableConfig(name="min.insync.replicas", config_operation=0, value=str(min_isr))
        type_, name = (ResourceType.BROKER, "") if of_all else (ResourceType.TOPIC, TOPIC)
        resource = AlterConfigsResource(resource_type=type_, resource_name=name, configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        self.cluster.apply(incremental_alter_configs(self.cluster.state, request, 0))
        if not of_all:
            self.checks.wanted_min_isr = min_isr
        self.checks.check()
        assert is_led or not eligible or eligible & {*self.partition.elr}, "nobody is eligible any more"

    @rule(replicas=st.none() | REPLICAS)
    def is_reassigned(self, replicas: list[int] | None) -> None:
        """To another three brokers; None cancels. As in Kafka, a cancellation may elect uncleanly a broker that is away."""
        if replicas is None and self.checks.unclean:
            return
        wanted = ReassignableTopic(name=TOPIC, partitions=[ReassignablePartition(partition_index=0, replicas=replicas)])
        request = AlterPartitionReassignmentsRequest(topics=[wanted])
        response = self.cluster.apply(alter_reassignments(self.cluster.state, request, 0))
        self.checks.check()
        if replicas is not None and response.responses[0].partitions[0].error_code == ErrorCode.NONE:
            assert self.partition.final_replicas == replicas

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "checks"):
            self.checks.check()


TestElectionMachine = ElectionMachine.TestCase
TestElectionMachine.settings = settings(
    max_examples=examples(200), stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
