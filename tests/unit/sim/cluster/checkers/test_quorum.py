"""Checkers of the quorum: one leader, one committed log on a durable majority, images of it, fencing, producer ids."""

import asyncio
from random import Random

import pytest
from tests.support.nodes.metadata_batches import NOW_MS, logged

from ottla.env import File, OpenMode
from ottla.ids import Uuid
from ottla.metadata.image.cluster import BrokerRegistration, ClusterImage
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.metadata.image.topics import PartitionState, Topic, TopicsImage
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer
from ottla.sim.cluster.checkers.quorum import CommittedLog, DurableMajority, Fencing, Images, OneLeader, ProducerBlocks
from ottla.sim.disk import MemoryDisk
from ottla.wire.base import Message
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.metadata_records import FeatureLevelRecord

FIRST, SECOND = logged(0, 1), logged(1, 1)


def begun() -> CommittedLog:
    checker = CommittedLog()
    checker.committed("n1", 1, True, 2, [FIRST, SECOND])
    return checker


def test_nodes_that_commit_the_same_agree() -> None:
    checker = begun()
    checker.committed("n2", 1, False, 1, [FIRST])
    checker.committed("n2", 2, False, 3, [SECOND, logged(2, 2)])
    checker.led("n3", 3, [FIRST, SECOND, logged(2, 2), logged(3, 3)])
    assert checker.end_offset == 3


def test_another_batch_at_a_committed_offset_is_found() -> None:
    with pytest.raises(Violation, match=r"n2 commits batch 1-1 of epoch 2 .*, and committed there was batch 1-1 of epoch 1"):
        begun().committed("n2", 2, False, 2, [FIRST, logged(1, 2)])


def test_a_batch_across_a_committed_one_is_found() -> None:
    checker = CommittedLog()
    checker.committed("n1", 1, True, 2, [logged(0, 1, *[FIRST.decoded().records[0]] * 2)])
    with pytest.raises(Violation, match="no other node has committed a batch that begins there"):
        checker.committed("n2", 1, False, 2, [SECOND])


def test_a_gap_is_found() -> None:
    with pytest.raises(Violation, match="nobody has committed those from 2 on"):
        begun().committed("n2", 1, False, 4, [logged(3, 1)])


def test_a_high_watermark_that_goes_back_is_found() -> None:
    checker = begun()
    with pytest.raises(Violation, match="n1 had committed up to 2, and now up to 1"):
        checker.committed("n1", 1, True, 1, [])
    checker.started("n1")
    checker.committed("n1", 1, False, 1, [])


def test_a_leader_commits_older_batches_only_with_one_of_its_epoch() -> None:
    with pytest.raises(Violation, match="without a batch of its own epoch"):
        begun().committed("n2", 2, True, 3, [logged(2, 1)])


def test_a_leader_without_a_committed_batch_is_found() -> None:
    with pytest.raises(Violation, match=r"n2 leads epoch 2 and has nothing where batch 1-1"):
        begun().led("n2", 2, [FIRST])
    with pytest.raises(Violation, match=r"n2 leads epoch 2 and has 1-1 of epoch 2"):
        begun().led("n2", 2, [FIRST, logged(1, 2)])


def test_a_leader_of_an_epoch_that_was_over_before_the_commit_is_excused() -> None:
    begun().led("n2", 1, [FIRST])


def test_a_leader_whose_log_starts_at_a_snapshot_is_excused_below() -> None:
    begun().led("n2", 2, [SECOND, logged(2, 2)])


def test_a_controller_that_is_active_too_early_is_found() -> None:
    checker = begun()
    checker.activated("n1", 1)
    with pytest.raises(Violation, match="no batch of that epoch is committed"):
        checker.activated("n2", 2)


def test_an_answer_to_an_uncommitted_change_is_found() -> None:
    checker = begun()
    request, response = CreateTopicsRequest(), CreateTopicsResponse()
    checker.answered("n1", Answer(request, response, [SECOND.entry], None))
    with pytest.raises(Violation, match=r"n1 has answered CreateTopics, and batch 2-2 of epoch 1 .* is not committed"):
        checker.answered("n1", Answer(request, response, [logged(2, 1).entry], None))


FOLDER = "/data/a/__cluster_metadata-0"
NAMES = ("n1", "n2", "n3")


class Voters:
    """Three disks with a metadata log each."""

    def __init__(self) -> None:
        self.disks = {name: MemoryDisk(Random(1)) for name in NAMES}
        self.files: dict[str, File] = {}
        for name, disk in self.disks.items():
            disk.make_directory(FOLDER)
            self.files[name] = disk.open(f"{FOLDER}/{0:020d}.log", OpenMode.CREATE)
        self.checker = DurableMajority(lambda: self.disks, FOLDER)

    def append(self, name: str, offset: int, epoch: int = 1) -> None:
        self.files[name].append(logged(offset, epoch).view.data)

    def sync(self, *names: str) -> None:
        for name in names:
            asyncio.run(self.files[name].sync())

    def commit(self, offset: int) -> None:
        self.checker.committed("n1", 1, True, offset, [])


def test_a_synced_majority_is_enough() -> None:
    voters = Voters()
    for name in NAMES:
        voters.append(name, 0)
    voters.sync("n1", "n3")
    voters.commit(1)
    for name in NAMES:
        voters.append(name, 1)
    voters.sync("n1", "n2")
    voters.commit(2)


def test_unsynced_batches_do_not_count() -> None:
    voters = Voters()
    for name in NAMES:
        voters.append(name, 0)
    voters.sync("n1")
    with pytest.raises(Violation, match="n1 commits up to 1, and durable is: n1 up to 1, n2 up to 0, n3 up to 0"):
        voters.commit(1)


def test_a_truncated_batch_does_not_count() -> None:
    voters = Voters()
    for name in NAMES:
        voters.append(name, 0)
        voters.append(name, 1)
    voters.sync(*NAMES)
    voters.commit(2)
    for name in ("n2", "n3"):
        voters.files[name].truncate(len(logged(0, 1).view.data))
        voters.sync(name)
    with pytest.raises(Violation, match="durable is: n1 up to 2, n2 up to 1, n3 up to 1"):
        voters.commit(2)


def test_a_batch_that_was_overwritten_and_not_synced_again_counts_as_it_was() -> None:
    voters = Voters()
    voters.append("n1", 0)
    voters.append("n2", 0)
    voters.sync("n1", "n2")
    voters.files["n2"].truncate(0)
    voters.commit(1)


def test_a_synced_snapshot_counts() -> None:
    voters = Voters()
    voters.append("n1", 0)
    voters.sync("n1")
    snapshot = voters.disks["n2"].open(f"{FOLDER}/{1:020d}-{1:010d}.checkpoint", OpenMode.CREATE)
    snapshot.append(b"x")
    asyncio.run(snapshot.sync())
    voters.commit(1)


def test_a_follower_commits_what_its_leader_says() -> None:
    Voters().checker.committed("n2", 1, False, 5, [])


def test_two_leaders_of_one_epoch_are_found() -> None:
    checker = OneLeader()
    checker.led("n1", 1, [])
    checker.led("n2", 2, [])
    with pytest.raises(Violation, match="epoch 2 has two leaders: n2 and n3"):
        checker.led("n3", 2, [])


def test_two_votes_in_one_epoch_are_found() -> None:
    checker = OneLeader()
    checker.voted("n1", 1, 2)
    checker.voted("n1", 1, 2)
    checker.voted("n1", 2, 3)
    checker.voted("n2", 1, 3)
    with pytest.raises(Violation, match="n1 has voted for 2 and for 3 in epoch 1"):
        checker.voted("n1", 1, 3)


VERSION = FeatureLevelRecord(name="metadata.version", feature_level=25)
LEVEL = FeatureLevelRecord(name="transaction.version", feature_level=2)


def image(offset: int, *records: Message) -> MetadataImage:
    delta = MetadataDelta(MetadataImage())
    delta.replay_all(records)
    return delta.finish(Provenance(offset, 1, NOW_MS))


def images_begun(checker: Images | None = None) -> Images:
    checker = checker or Images()
    checker.committed("n1", 1, True, 2, [logged(0, 1, VERSION), logged(1, 1, LEVEL)])
    return checker


def test_images_of_prefixes_are_right() -> None:
    checker = images_begun()
    checker.published("n2", image(0, VERSION))
    checker.published("n2", image(1, VERSION, LEVEL))
    checker.ended({"n2": image(1, VERSION, LEVEL)})
    assert checker.judged == 3


def test_an_image_without_a_record_is_found() -> None:
    with pytest.raises(Violation, match="n2 has other features at offset 1 than the committed log"):
        images_begun().published("n2", image(1, VERSION))


def test_an_image_that_is_not_committed_is_found() -> None:
    with pytest.raises(Violation, match="n2 has an image up to offset 2, and no committed batch"):
        images_begun().published("n2", image(2, VERSION, LEVEL))


def test_an_image_that_goes_back_is_found() -> None:
    checker = images_begun()
    checker.published("n2", image(1, VERSION, LEVEL))
    with pytest.raises(Violation, match="n2 has published the metadata up to 1, and then up to 0"):
        checker.published("n2", image(0, VERSION))
    checker.started("n2")
    checker.published("n2", image(0, VERSION))


def test_a_node_that_stays_behind_is_found_at_the_end() -> None:
    with pytest.raises(Violation, match="n2 has applied the metadata up to 0, and the log ends at 1"):
        images_begun().ended({"n2": image(0, VERSION)})


def test_every_committed_image_is_passed_on_once() -> None:
    seen: list[tuple[int, int]] = []
    checker = images_begun(Images(lambda before, after: seen.append((before.provenance.offset, after.provenance.offset))))
    checker.committed("n2", 1, False, 1, [logged(0, 1, VERSION)])
    assert seen == [(-1, 0), (0, 1)]


INCARNATION, OTHER, TOPIC = (Uuid(bytes([number]) * 16) for number in (1, 2, 3))


def broker(epoch: int = 5, *, fenced: bool = False, incarnation: Uuid = INCARNATION) -> BrokerRegistration:
    return BrokerRegistration(1, epoch, incarnation, {}, {}, None, fenced, False, ())


def image_of(*brokers: BrokerRegistration, leader: int = -1) -> MetadataImage:
    topic = Topic("t", TOPIC, {0: PartitionState((1,), (), (1,), leader, 0, 0)})
    return MetadataImage(
        cluster=ClusterImage({each.id: each for each in brokers}), topics=TopicsImage({"t": topic}, {TOPIC: topic})
    )


def test_an_unfenced_broker_may_lead() -> None:
    Fencing().image_committed(MetadataImage(), image_of(broker(), leader=1))
    Fencing().image_committed(MetadataImage(), image_of(broker(fenced=True)))


@pytest.mark.parametrize(("brokers", "what"), [([broker(fenced=True)], "is fenced"), ([], "is not registered")])
def test_a_leader_that_may_not_lead_is_found(brokers: list[BrokerRegistration], what: str) -> None:
    with pytest.raises(Violation, match=f"broker 1 leads t-0 at offset -1, and it {what}"):
        Fencing().image_committed(MetadataImage(), image_of(*brokers, leader=1))


def test_broker_epochs_that_go_back_or_are_shared_are_found() -> None:
    Fencing().image_committed(image_of(broker(5)), image_of(broker(6, incarnation=OTHER)))
    with pytest.raises(Violation, match="broker 1 was registered in epoch 5, and then in 4"):
        Fencing().image_committed(image_of(broker(5)), image_of(broker(4)))
    with pytest.raises(Violation, match="two processes of broker 1 share epoch 5"):
        Fencing().image_committed(image_of(broker(5)), image_of(broker(5, incarnation=OTHER)))


def test_a_request_of_an_older_epoch_that_is_obeyed_is_found() -> None:
    checker = Fencing()
    request, response = BrokerHeartbeatRequest(broker_id=1, broker_epoch=5), BrokerHeartbeatResponse()
    checker.answered("n2", Answer(request, response, [], 5))
    checker.answered("n2", Answer(CreateTopicsRequest(), CreateTopicsResponse(), [], None))
    assert checker.judged == 1
    with pytest.raises(
        Violation, match="n2 has obeyed BrokerHeartbeat of broker 1 in epoch 5, and it is registered in epoch 9"
    ):
        checker.answered("n2", Answer(request, response, [], 9))


def block(start: int, broker_id: int = 1) -> Answer:
    response = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=1000)
    return Answer(AllocateProducerIdsRequest(broker_id=broker_id), response, [], 0)


def test_blocks_side_by_side_are_right() -> None:
    checker = ProducerBlocks()
    checker.answered("n1", block(0))
    checker.answered("n2", block(1000))
    assert len(checker.blocks) == 2


def test_overlapping_blocks_are_found() -> None:
    checker = ProducerBlocks()
    checker.answered("n1", block(0))
    with pytest.raises(Violation, match=r"n2 has allocated the producer ids 999 to 1998 to broker 2, and 0 to 999 .* broker 1"):
        checker.answered("n2", block(999, 2))


def test_a_next_id_that_goes_back_is_found() -> None:
    with pytest.raises(Violation, match="the next producer id was 2000, and then 1000"):
        ProducerBlocks().image_committed(MetadataImage(next_producer_id=2000), MetadataImage(next_producer_id=1000))
