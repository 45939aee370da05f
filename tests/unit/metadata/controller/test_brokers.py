"""Brokers that register, are unfenced, expire, shut down and return; and the effect on their partitions."""

from typing import Any

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster, directory_of

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.controller.brokers import check_broker_epoch, fence_silent_brokers, register_broker, unregister_broker
from ottla.metadata.controller.directories import assign_directory
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.features import METADATA_VERSION_MAX, METADATA_VERSION_MIN
from ottla.wire.messages.broker_registration import Feature
from ottla.wire.messages.metadata_records import FeatureLevelRecord
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest


def refusal(cluster: ControllerCluster, broker_id: int, **fields: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        register_broker(cluster.state, cluster.registration(broker_id, **fields), cluster.now_ms)
    return error.value.code


def cluster_of(count: int, **options: Any) -> ControllerCluster:
    cluster = ControllerCluster(**options)
    for broker_id in range(1, count + 1):
        cluster.add_broker(broker_id)
    return cluster


def test_a_broker_registers_fenced_with_the_offset_as_its_epoch() -> None:
    cluster = ControllerCluster()
    expected = cluster.state.next_offset
    epoch = cluster.register(1, rack="r")
    broker = cluster.state.image.cluster.brokers[1]
    assert epoch == broker.epoch == expected
    assert broker.fenced
    assert broker.rack == "r"
    assert broker.directories == (directory_of(1),)


def test_a_broker_is_unfenced_once_it_has_read_its_registration() -> None:
    cluster = ControllerCluster()
    epoch = cluster.register(1)
    behind = cluster.heartbeat(1, current_metadata_offset=epoch - 1)
    assert (behind.is_fenced, behind.is_caught_up) == (True, False)
    kept_out = cluster.heartbeat(1, want_fence=True)
    assert (kept_out.is_fenced, kept_out.is_caught_up) == (True, True)
    let_in = cluster.heartbeat(1, current_metadata_offset=epoch)
    assert (let_in.is_fenced, let_in.is_caught_up) == (False, True)
    assert not cluster.state.image.cluster.brokers[1].fenced


def test_a_heartbeat_of_another_registration_is_refused() -> None:
    cluster = cluster_of(1)
    for broker_id, epoch in ((1, 77), (9, 0)):
        with pytest.raises(KafkaError) as error:
            check_broker_epoch(cluster.state, broker_id, epoch)
        assert error.value.code == ErrorCode.STALE_BROKER_EPOCH
    with pytest.raises(KafkaError):
        cluster.heartbeat(1, broker_epoch=77)


def test_refused_registrations() -> None:
    cluster = cluster_of(1)
    assert refusal(cluster, 2, cluster_id="another") == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert refusal(cluster, 2, is_migrating_zk_broker=True) == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert refusal(cluster, 2, log_dirs=[]) == ErrorCode.INVALID_REGISTRATION
    assert refusal(cluster, 2, log_dirs=[directory_of(2)] * 2) == ErrorCode.INVALID_REGISTRATION
    assert refusal(cluster, 2, log_dirs=[directory_of(1)]) == ErrorCode.INVALID_REGISTRATION
    assert refusal(cluster, 2, log_dirs=[Uuid(bytes(15) + b"\x63")]) == ErrorCode.INVALID_REGISTRATION
    assert refusal(cluster, 2, features=[]) == ErrorCode.INVALID_REGISTRATION
    old = [Feature(name="metadata.version", min_supported_version=7, max_supported_version=29)]
    assert refusal(cluster, 2, features=old) == ErrorCode.UNSUPPORTED_VERSION
    without_groups = [Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)]
    assert refusal(cluster, 2, features=without_groups) == ErrorCode.UNSUPPORTED_VERSION


def test_a_broker_may_register_without_unserved_features() -> None:
    cluster = ControllerCluster()
    cluster.append(
        [FeatureLevelRecord(name="share.version", feature_level=1), FeatureLevelRecord(name="streams.version", feature_level=1)]
    )
    cluster.add_broker(1)
    cluster.append([FeatureLevelRecord(name="share.version", feature_level=2)])
    assert refusal(cluster, 2) == ErrorCode.UNSUPPORTED_VERSION


def test_a_second_broker_of_an_id_waits_until_the_session_expires() -> None:
    cluster = cluster_of(2)
    assert refusal(cluster, 2) == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.now_ms += 9000
    assert refusal(cluster, 2) == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.now_ms += 1
    cluster.register(2)
    assert cluster.state.image.cluster.brokers[2].fenced


def test_the_same_incarnation_amends_its_registration() -> None:
    cluster = cluster_of(1)
    before = cluster.state.image.cluster.brokers[1]
    cluster.register(1, incarnation_id=before.incarnation_id, rack="new")
    after = cluster.state.image.cluster.brokers[1]
    assert (after.epoch, after.fenced, after.rack) == (before.epoch, False, "new")


def test_activation_starts_sessions_except_for_its_own_broker() -> None:
    cluster = cluster_of(2)
    image = cluster.state.image
    cluster.state = ControllerState(cluster.state.settings, cluster.state.randomness, image)
    cluster.state.activate(now_ms=100_000)
    cluster.now_ms = 100_001
    cluster.register(1)  # this node's own broker need not wait for a session to expire
    assert refusal(cluster, 2) == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    check = fence_silent_brokers(cluster.state, 109_000).response
    assert check.fenced == ()
    assert check.next_check_ms == 109_001
    assert cluster.apply(fence_silent_brokers(cluster.state, 109_001)).fenced == (2,)
    assert cluster.state.image.cluster.brokers[2].fenced


def test_expired_brokers_are_fenced_one_at_a_time() -> None:
    cluster = cluster_of(3)
    cluster.now_ms = 5000
    cluster.heartbeat(3)
    check = cluster.apply(fence_silent_brokers(cluster.state, 5000))
    assert check == ((), 9001)
    cluster.now_ms = 9001
    fenced = []
    while (check := cluster.apply(fence_silent_brokers(cluster.state, 9001))).fenced:
        assert check.next_check_ms == 9001
        fenced += check.fenced
    assert sorted(fenced) == [1, 2]
    assert check.next_check_ms == 14_001
    cluster.now_ms = 14_001
    cluster.apply(fence_silent_brokers(cluster.state, 14_001))
    assert cluster.apply(fence_silent_brokers(cluster.state, 14_001)).next_check_ms is None


def test_a_fenced_broker_leaves_the_isr_and_others_lead() -> None:
    cluster = cluster_of(3)
    cluster.create_topic("t", assignments=[[1, 2, 3], [2, 3, 1]], configs={"min.insync.replicas": "2"})
    cluster.heartbeat(1, want_fence=True)
    first, second = cluster.partition("t"), cluster.partition("t", 1)
    assert (first.leader, first.isr, first.leader_epoch, first.partition_epoch) == (2, (2, 3), 1, 1)
    assert (second.leader, second.isr, second.leader_epoch, second.partition_epoch) == (2, (2, 3), 0, 1)
    cluster.heartbeat(2, want_fence=True)
    first = cluster.partition("t")
    assert (first.leader, first.isr, first.elr) == (3, (3,), (2,))
    cluster.heartbeat(3, want_fence=True)
    first = cluster.partition("t")
    assert (first.leader, first.isr, first.elr, first.last_known_elr) == (-1, (), (2, 3), (3,))
    cluster.heartbeat(2)
    first = cluster.partition("t")
    assert (first.leader, first.isr, first.elr, first.last_known_elr) == (2, (2,), (3,), ())


def test_without_elr_the_last_in_sync_replica_stays_in_the_isr() -> None:
    cluster = cluster_of(2, features={"eligible.leader.replicas.version": 0})
    cluster.create_topic("t", assignments=[[1, 2]])
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(2, want_fence=True)
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (-1, (2,))
    cluster.heartbeat(1)
    assert cluster.partition("t").leader == -1, "broker 1 is not in sync"
    cluster.heartbeat(2)
    assert cluster.partition("t").leader == 2


def test_an_unclean_election_happens_where_the_topic_allows_it() -> None:
    cluster = cluster_of(2, features={"eligible.leader.replicas.version": 0})
    cluster.create_topic("t", assignments=[[1, 2]], configs={"unclean.leader.election.enable": "true"})
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(1)
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 1)


def test_a_controlled_shutdown_waits_until_leadership_has_moved() -> None:
    cluster = cluster_of(2)
    cluster.create_topic("t", assignments=[[1, 2]])
    asked_at = cluster.state.next_offset
    answer = cluster.heartbeat(1, want_shut_down=True)
    assert not answer.should_shut_down
    assert cluster.state.image.cluster.brokers[1].in_controlled_shutdown
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))
    cluster.heartbeat(2, current_metadata_offset=asked_at)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down, "broker 2 has not read that it leads"
    cluster.heartbeat(2)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.state.image.cluster.brokers[1].fenced


def test_a_broker_that_leads_nothing_may_shut_down_at_once() -> None:
    cluster = cluster_of(1)
    answer = cluster.heartbeat(1, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    cluster.register(1)  # need not wait for its session to expire


def test_a_single_node_leads_again_after_a_clean_shutdown() -> None:
    cluster = cluster_of(1)
    cluster.create_topic("t", partitions=2, replication_factor=1)
    epoch = cluster.state.image.cluster.brokers[1].epoch
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert [(each.leader, each.isr, each.elr) for each in cluster.topic("t").partitions.values()] == [(-1, (), (1,))] * 2
    cluster.add_broker(1, previous_broker_epoch=epoch)
    assert [(each.leader, each.isr, each.elr) for each in cluster.topic("t").partitions.values()] == [(1, (1,), ())] * 2
    assert cluster.partition("t").leader_recovery_state == 0


def test_a_single_node_that_crashed_leads_again_as_recovering() -> None:
    cluster = cluster_of(1)
    cluster.create_topic("t", partitions=1, replication_factor=1)
    cluster.now_ms += 10_000
    cluster.register(1)
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (-1, (), (), (1,))
    cluster.heartbeat(1)
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 1)


@pytest.mark.parametrize("has_shut_down", [False, True])
@pytest.mark.parametrize("metadata_version", range(METADATA_VERSION_MIN, METADATA_VERSION_MAX + 1))
def test_registration_ends_what_the_process_before_it_led(metadata_version: int, has_shut_down: bool) -> None:
    """Brokers rely on it: a process leads nothing before its registration, and then only in new leader epochs."""
    cluster = cluster_of(2, metadata_version=metadata_version)
    cluster.create_topic("t", assignments=[[1, 2], [2, 1]], configs={"min.insync.replicas": "2"})
    cluster.create_topic("u", assignments=[[1]], configs={"unclean.leader.election.enable": "true"})
    cluster.create_topic("v", assignments=[[1]])
    before = [state for name in "tuv" for state in cluster.topic(name).partitions.values()]
    assert [each.leader for each in before] == [1, 2, 1, 1]
    epoch = cluster.state.image.cluster.brokers[1].epoch
    cluster.now_ms += 10_000
    cluster.heartbeat(2)
    cluster.register(1, previous_broker_epoch=epoch if has_shut_down else -1)
    after = [state for name in "tuv" for state in cluster.topic(name).partitions.values()]
    assert [each.leader for each in after] == [2, 2, -1, -1]
    assert all(new.leader_epoch > old.leader_epoch for old, new in zip(before, after, strict=True) if old.leader == 1)
    cluster.heartbeat(1)
    assert (cluster.partition("u").leader, cluster.partition("v").leader) == (1, 1)


def test_a_broker_that_shut_down_returns_only_by_registering() -> None:
    cluster = cluster_of(2)
    cluster.create_topic("t", assignments=[[1, 2]])
    cluster.heartbeat(1, want_shut_down=True)
    cluster.heartbeat(2)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.heartbeat(1).is_fenced
    cluster.now_ms += 10_000
    cluster.add_broker(1)


def test_lost_directories_take_their_replicas_out_of_sync() -> None:
    cluster = ControllerCluster()
    both = [directory_of(1), directory_of(1, 1)]
    cluster.add_broker(1, log_dirs=both)
    cluster.add_broker(2)
    cluster.create_topic("t", assignments=[[1, 2]])
    cluster.apply(assign_directory(cluster.state, 1, cluster.topic("t").id, 0, both[1]))
    assert cluster.partition("t").directories == (both[1], directory_of(2))
    assert cluster.partition("t").leader == 1
    cluster.heartbeat(1, offline_log_dirs=[both[1]])
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))
    assert cluster.state.image.cluster.brokers[1].directories == (both[0],)
    log = len(cluster.log)
    cluster.heartbeat(1, offline_log_dirs=[both[1]])
    assert len(cluster.log) == log, "the broker reported it already"


@pytest.mark.parametrize("elr", [0, 1])
def test_heartbeat_that_reports_a_lost_directory_does_not_unfence(elr: int) -> None:
    """Broker 2 would be elected for the partition in that directory, and stay its leader."""
    cluster = ControllerCluster(features={"eligible.leader.replicas.version": elr})
    both = [directory_of(2), directory_of(2, 1)]
    cluster.add_broker(1)
    cluster.add_broker(2, log_dirs=both)
    topic = cluster.create_topic("t", assignments=[[1, 2], [1, 2]], configs={"min.insync.replicas": "2"})
    for number in (0, 1):
        cluster.apply(assign_directory(cluster.state, 2, topic.id, number, both[number]))
    for broker_id in (1, 2):
        cluster.heartbeat(broker_id, want_fence=True)
    assert cluster.heartbeat(2, offline_log_dirs=both[:1]).is_fenced
    assert cluster.state.image.cluster.brokers[2].directories == (both[1],)
    assert not cluster.heartbeat(2, offline_log_dirs=both[:1]).is_fenced
    assert [cluster.partition("t", number).leader for number in (0, 1)] == [-1, 2]


def test_unchanged_cordoned_directories_are_not_written_again() -> None:
    cluster = cluster_of(1)
    cluster.heartbeat(1, cordoned_log_dirs=[directory_of(1)])
    assert cluster.state.image.cluster.brokers[1].cordoned_directories == (directory_of(1),)
    log = len(cluster.log)
    cluster.heartbeat(1, cordoned_log_dirs=[directory_of(1)])
    assert len(cluster.log) == log


def test_an_unregistered_broker_is_forgotten() -> None:
    cluster = cluster_of(2)
    cluster.create_topic("t", assignments=[[1, 2]])
    cluster.apply(unregister_broker(cluster.state, UnregisterBrokerRequest(broker_id=1), 0))
    assert list(cluster.state.image.cluster.brokers) == [2]
    assert (cluster.partition("t").leader, cluster.partition("t").isr, cluster.partition("t").replicas) == (2, (2,), (1, 2))
    with pytest.raises(KafkaError) as error:
        unregister_broker(cluster.state, UnregisterBrokerRequest(broker_id=1), 0)
    assert error.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED
