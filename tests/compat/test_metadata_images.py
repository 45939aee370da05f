"""Our images compared with Apache's: the same records give the same image, and each side's snapshot is the other's image."""

import random

import pytest
from tests.support.logs.metadata_logs import random_log
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.metadata.features import METADATA_VERSION_MAX, METADATA_VERSION_MIN, record_version
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.metadata.image.to_records import image_records
from ottla.wire.base import Message
from ottla.wire.log_records import decode_metadata_record, encode_metadata_record

LOGS = 400


def image_of(log: list[Message]) -> MetadataImage:
    delta = MetadataDelta(MetadataImage())
    delta.replay_all(log)
    return delta.finish(Provenance())


def hexed(log: list[Message], version: int) -> str:
    return " ".join(encode_metadata_record(record, record_version(record, version)).hex() for record in log)


def unhexed(text: str) -> list[Message]:
    return [decode_metadata_record(bytes.fromhex(word)).message for word in text.split()]


@pytest.mark.slow
def test_replayed_alike(apache_kafka: ApacheKafka) -> None:
    versions = [METADATA_VERSION_MIN + seed % (METADATA_VERSION_MAX - METADATA_VERSION_MIN + 1) for seed in range(LOGS)]
    logs = [random_log(random.Random(seed), 2 + seed % 60, version) for seed, version in enumerate(versions)]
    images = [image_of(log) for log in logs]
    ours = [hexed(list(image_records(image)), version) for image, version in zip(images, versions, strict=True)]
    questions = [f"image {hexed(log, version)}" for log, version in zip(logs, versions, strict=True)]
    questions += [
        f"same {hexed(log, version)} / {snapshot}" for log, version, snapshot in zip(logs, versions, ours, strict=True)
    ]
    answers = apache_kafka.run_java("MetadataOracle.java", stdin="\n".join(questions) + "\n").stdout.splitlines()
    for seed, (image, snapshot, is_same) in enumerate(zip(images, answers[:LOGS], answers[LOGS:], strict=True)):
        assert not snapshot.startswith("error"), f"seed {seed}: {snapshot}"
        assert image_of(unhexed(snapshot)) == image, f"seed {seed}: Apache's image is another"
        assert is_same == "true", f"seed {seed}: our snapshot is another image to Apache"
