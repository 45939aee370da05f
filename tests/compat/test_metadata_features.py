"""Our table of features compared with Apache's classes."""

import pytest
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.metadata.features import (
    DEPENDENCIES,
    METADATA_VERSION,
    METADATA_VERSIONS,
    SUPPORTED_FEATURES,
    UNSERVED_FEATURES,
    default_levels,
    metadata_version_of,
    record_version,
)
from ottla.wire.messages.metadata_records import PartitionChangeRecord, PartitionRecord, RegisterBrokerRecord


@pytest.mark.slow
def test_features_are_apaches(apache_kafka: ApacheKafka) -> None:
    lines = [line.split() for line in apache_kafka.run_java("FeatureOracle.java").stdout.splitlines()]
    versions = [words[1:] for words in lines if words[0] == "version"]
    assert [int(words[0]) for words in versions] == list(METADATA_VERSIONS)
    for level, name, changes, broker, partition, change, *defaults in versions:
        version = METADATA_VERSIONS[int(level)]
        assert (version.name, version.changes_records) == (name, changes == "true")
        assert metadata_version_of(name) == version.level
        assert record_version(RegisterBrokerRecord(), version.level) == int(broker)
        assert record_version(PartitionRecord(), version.level) == int(partition)
        assert record_version(PartitionChangeRecord(), version.level) == int(change)
        theirs = {feature: int(text) for feature, _, text in (word.partition("=") for word in defaults)}
        served = {feature: default for feature, default in theirs.items() if default and feature not in UNSERVED_FEATURES}
        assert default_levels(version.level) == {METADATA_VERSION: version.level} | served
    ranges = {words[1]: (int(words[2]), int(words[3])) for words in lines if words[0] == "feature"}
    unserved = {name: (0, level) for name, level in UNSERVED_FEATURES.items()}
    assert ranges == {name: levels for name, levels in (SUPPORTED_FEATURES | unserved).items() if name != METADATA_VERSION}
    dependencies = {
        (words[1], int(words[2])): {name: int(level) for name, _, level in (word.partition("=") for word in words[3:])}
        for words in lines
        if words[0] == "level" and words[3:]
    }
    assert dependencies == DEPENDENCIES
