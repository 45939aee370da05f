"""Records replayed onto images: what changes, what is shared, what is refused."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.support.logs.metadata_logs import random_log

from ottla.errors import BrokenInvariant
from ottla.ids import Uuid
from ottla.metadata.features import METADATA_VERSION_MAX, METADATA_VERSION_MIN, record_version
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.metadata.image.to_records import image_records
from ottla.wire.base import Message
from ottla.wire.log_records import InternalLog, _classes_of, decode_metadata_record, encode_metadata_record
from ottla.wire.messages import metadata_records as records

A, B = Uuid(b"A" * 16), Uuid(b"B" * 16)
RANDOMS = st.randoms(use_true_random=False)
VERSIONS = st.integers(METADATA_VERSION_MIN, METADATA_VERSION_MAX)


def replayed(base: MetadataImage, *log: Message) -> MetadataImage:
    delta = MetadataDelta(base)
    delta.replay_all(log)
    return delta.finish(Provenance(len(log), 1, 2))


def partition(topic_id: Uuid, number: int, **fields: object) -> records.PartitionRecord:
    known: dict[str, object] = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    return records.PartitionRecord(partition_id=number, topic_id=topic_id, **(known | fields))  # type: ignore[arg-type]


TWO_TOPICS = replayed(
    MetadataImage(),
    records.TopicRecord(name="a", topic_id=A),
    partition(A, 0),
    partition(A, 1),
    records.ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value="5"),
    records.TopicRecord(name="b", topic_id=B),
    partition(B, 0),
)


def test_every_record_of_the_log_is_known() -> None:
    from ottla.metadata.image.delta import _REPLAYS

    transactions = {records.BeginTransactionRecord, records.EndTransactionRecord, records.AbortTransactionRecord}
    assert set(_REPLAYS) | transactions == set(_classes_of(InternalLog.CLUSTER_METADATA))


def test_a_delta_lists_what_changed_and_shares_the_rest() -> None:
    delta = MetadataDelta(TWO_TOPICS)
    delta.replay(records.PartitionChangeRecord(topic_id=A, partition_id=1, leader=2))
    image = delta.finish(Provenance(9, 1, 0))
    assert delta.base is TWO_TOPICS
    assert delta.changed_topics == {A}
    assert not delta.deleted_topics
    assert not delta.changed_configs
    assert not delta.changed_brokers
    assert not delta.features_changed
    assert image.provenance == Provenance(9, 1, 0)
    assert image.topics.by_name["b"] is TWO_TOPICS.topics.by_name["b"]
    assert image.topics.by_name["a"].partitions[0] is TWO_TOPICS.topics.by_name["a"].partitions[0]
    assert image.topics.by_name["a"] is image.topics.by_id[A]
    assert image.configs is TWO_TOPICS.configs
    assert image.cluster is TWO_TOPICS.cluster
    changed, before = image.topics.by_id[A].partitions[1], TWO_TOPICS.topics.by_id[A].partitions[1]
    assert (changed.leader, changed.leader_epoch, changed.partition_epoch) == (2, 1, 1)
    assert (before.leader, before.leader_epoch, before.partition_epoch) == (1, 0, 0)


def test_deleting_a_topic_removes_its_settings() -> None:
    delta = MetadataDelta(TWO_TOPICS)
    delta.replay(records.RemoveTopicRecord(topic_id=A))
    image = delta.finish(Provenance())
    assert delta.deleted_topics == {A: TWO_TOPICS.topics.by_id[A]}
    assert delta.changed_configs == {(2, "a")}
    assert list(image.topics.by_name) == ["b"]
    assert not image.configs


def test_a_topic_deleted_and_created_again_has_no_settings() -> None:
    again = Uuid(b"C" * 16)
    delta = MetadataDelta(TWO_TOPICS)
    delta.replay_all(
        [records.RemoveTopicRecord(topic_id=A), records.TopicRecord(name="a", topic_id=again), partition(again, 0)]
    )
    image = delta.finish(Provenance())
    assert set(delta.deleted_topics) == {A}
    assert delta.changed_topics == {again}
    assert image.topics.by_name["a"].id == again
    assert not image.configs


def test_a_topic_created_and_deleted_in_one_delta_leaves_nothing() -> None:
    delta = MetadataDelta(MetadataImage())
    setting = records.ConfigRecord(resource_type=2, resource_name="a", name="x", value="1")
    delta.replay_all(
        [records.TopicRecord(name="a", topic_id=A), setting, partition(A, 0), records.RemoveTopicRecord(topic_id=A)]
    )
    image = delta.finish(Provenance())
    assert not delta.changed_topics
    assert not delta.deleted_topics
    assert image == MetadataImage()


def test_partitions_are_sorted_when_records_come_out_of_order() -> None:
    image = replayed(
        MetadataImage(), records.TopicRecord(name="a", topic_id=A), partition(A, 2), partition(A, 0), partition(A, 1)
    )
    assert list(image.topics.by_name["a"].partitions) == [0, 1, 2]


def test_a_resource_is_removed_with_its_last_setting() -> None:
    image = replayed(TWO_TOPICS, records.ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value=None))
    assert not image.configs


def test_records_of_a_transaction_apply_when_it_ends() -> None:
    begun = replayed(
        MetadataImage(),
        records.BeginTransactionRecord(name="x"),
        records.FeatureLevelRecord(name="group.version", feature_level=1),
    )
    assert not begun.features
    assert begun.open_transaction == (records.FeatureLevelRecord(name="group.version", feature_level=1),)
    ended = replayed(begun, records.EndTransactionRecord())
    assert ended.features == {"group.version": 1}
    assert ended.open_transaction is None
    aborted = replayed(begun, records.AbortTransactionRecord(reason="x"))
    assert not aborted.features
    assert aborted.open_transaction is None
    with pytest.raises(BrokenInvariant):
        list(image_records(begun))


@pytest.mark.parametrize(
    "record",
    [
        records.TopicRecord(name="a", topic_id=Uuid(b"C" * 16)),
        records.TopicRecord(name="c", topic_id=A),
        partition(Uuid(b"C" * 16), 0),
        records.PartitionChangeRecord(topic_id=A, partition_id=9),
        records.PartitionChangeRecord(topic_id=Uuid(b"C" * 16), partition_id=0),
        partition(A, 2, directories=[B]),
        records.PartitionChangeRecord(topic_id=A, partition_id=0, replicas=[1, 2, 3], directories=[B]),
        records.RemoveTopicRecord(topic_id=Uuid(b"C" * 16)),
        records.ClearElrRecord(topic_name="c"),
        records.UnregisterBrokerRecord(broker_id=1, broker_epoch=1),
        records.FenceBrokerRecord(id=1, epoch=1),
        records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1),
        records.EndTransactionRecord(),
        records.AbortTransactionRecord(),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_that_contradicts_the_log_is_a_broken_invariant(record: Message) -> None:
    with pytest.raises(BrokenInvariant):
        replayed(TWO_TOPICS, record)


def test_a_transaction_within_a_transaction_is_a_broken_invariant() -> None:
    with pytest.raises(BrokenInvariant):
        replayed(MetadataImage(), records.BeginTransactionRecord(), records.BeginTransactionRecord())


def test_an_unknown_change_of_a_broker_is_a_broken_invariant() -> None:
    image = replayed(MetadataImage(), records.RegisterBrokerRecord(broker_id=1, broker_epoch=1))
    for change in ({"fenced": 2}, {"in_controlled_shutdown": -1}):
        with pytest.raises(BrokenInvariant):
            replayed(image, records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, **change))


@settings(max_examples=examples(50), deadline=None)
@given(RANDOMS, st.integers(1, 50), VERSIONS)
def test_an_image_equals_the_one_read_from_its_snapshot(rng: random.Random, count: int, version: int) -> None:
    log = random_log(rng, count, version)
    image = replayed(MetadataImage(), *log)
    written = [encode_metadata_record(record, record_version(record, version)) for record in image_records(image)]
    again = MetadataDelta(MetadataImage())
    again.replay_all(decode_metadata_record(data).message for data in written)
    assert again.finish(image.provenance) == image


@settings(max_examples=examples(50), deadline=None)
@given(RANDOMS, st.integers(2, 80), st.integers(1, 50), VERSIONS)
def test_a_log_replayed_in_two_deltas_gives_the_same_image(rng: random.Random, count: int, cut: int, version: int) -> None:
    log = random_log(rng, count, version)
    whole, first = replayed(MetadataImage(), *log), replayed(MetadataImage(), *log[:cut])
    copy = replayed(MetadataImage(), *log[:cut])
    in_parts = replayed(first, *log[cut:])
    assert in_parts.topics == whole.topics
    assert (in_parts.cluster, in_parts.configs, in_parts.features) == (whole.cluster, whole.configs, whole.features)
    assert (in_parts.security, in_parts.next_producer_id) == (whole.security, whole.next_producer_id)
    assert first == copy, "the image a delta starts from was changed by it"


@settings(max_examples=examples(50), deadline=None)
@given(RANDOMS, st.integers(2, 60), st.integers(1, 60), VERSIONS)
def test_the_changed_sets_of_a_delta_match_the_difference_of_images(
    rng: random.Random, count: int, cut: int, version: int
) -> None:
    log = random_log(rng, count, version)
    base = replayed(MetadataImage(), *log[:cut])
    delta = MetadataDelta(base)
    delta.replay_all(log[cut:])
    image = delta.finish(base.provenance)
    before, after = base.topics.by_id, image.topics.by_id
    assert set(delta.deleted_topics) == set(before) - set(after)
    assert {each for each in after if before.get(each) != after[each]} <= delta.changed_topics <= set(after)
    resources = set(base.configs) | set(image.configs)
    assert {each for each in resources if base.configs.get(each) != image.configs.get(each)} <= delta.changed_configs
    brokers = set(base.cluster.brokers) | set(image.cluster.brokers)
    assert {
        each for each in brokers if base.cluster.brokers.get(each) != image.cluster.brokers.get(each)
    } <= delta.changed_brokers
    assert delta.features_changed or base.features == image.features


def test_a_small_delta_on_a_large_image_is_quick() -> None:
    """1,000 topics of 10 partitions: a change of one must not cost as much as building them all."""
    log: list[Message] = []
    for number in range(1000):
        topic_id = Uuid(number.to_bytes(16, "big"))
        log.append(records.TopicRecord(name=f"topic-{number}", topic_id=topic_id))
        log += [partition(topic_id, index) for index in range(10)]
    began_s = time.perf_counter()
    image = replayed(MetadataImage(), *log)
    build_s = time.perf_counter() - began_s
    change = records.PartitionChangeRecord(topic_id=Uuid((500).to_bytes(16, "big")), partition_id=3, leader=2)
    took_s = []
    for _ in range(20):
        began_s = time.perf_counter()
        replayed(image, change)
        took_s.append(time.perf_counter() - began_s)
    assert min(took_s) < build_s / 50, f"{min(took_s) * 1e6:.0f} µs for one change, {build_s * 1e6:.0f} µs for 11,000 records"
