"""Every image is that of a prefix of the committed log."""

import pytest
from tests.support.nodes.metadata_batches import NOW_MS, logged

from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.quorum import Images
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import FeatureLevelRecord

VERSION = FeatureLevelRecord(name="metadata.version", feature_level=25)
LEVEL = FeatureLevelRecord(name="transaction.version", feature_level=2)


def image(offset: int, *records: Message) -> MetadataImage:
    delta = MetadataDelta(MetadataImage())
    delta.replay_all(records)
    return delta.finish(Provenance(offset, 1, NOW_MS))


def begun(checker: Images | None = None) -> Images:
    checker = checker or Images()
    checker.committed("n1", 1, True, 2, [logged(0, 1, VERSION), logged(1, 1, LEVEL)])
    return checker


def test_images_of_prefixes_are_right() -> None:
    checker = begun()
    checker.published("n2", image(0, VERSION))
    checker.published("n2", image(1, VERSION, LEVEL))
    checker.ended({"n2": image(1, VERSION, LEVEL)})
    assert checker.judged == 3


def test_an_image_without_a_record_is_found() -> None:
    with pytest.raises(Violation, match="n2 has other features at offset 1 than the committed log"):
        begun().published("n2", image(1, VERSION))


def test_an_image_that_is_not_committed_is_found() -> None:
    with pytest.raises(Violation, match="n2 has an image up to offset 2, and no committed batch"):
        begun().published("n2", image(2, VERSION, LEVEL))


def test_an_image_that_goes_back_is_found() -> None:
    checker = begun()
    checker.published("n2", image(1, VERSION, LEVEL))
    with pytest.raises(Violation, match="n2 has published the metadata up to 1, and then up to 0"):
        checker.published("n2", image(0, VERSION))
    checker.started("n2")
    checker.published("n2", image(0, VERSION))


def test_a_node_that_stays_behind_is_found_at_the_end() -> None:
    with pytest.raises(Violation, match="n2 has applied the metadata up to 0, and the log ends at 1"):
        begun().ended({"n2": image(0, VERSION)})


def test_every_committed_image_is_passed_on_once() -> None:
    seen: list[tuple[int, int]] = []
    checker = begun(Images(lambda before, after: seen.append((before.provenance.offset, after.provenance.offset))))
    checker.committed("n2", 1, False, 1, [logged(0, 1, VERSION)])
    assert seen == [(-1, 0), (0, 1)]
