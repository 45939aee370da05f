"""Levels, names and record versions of features. tests/compat/test_metadata_features.py compares them with Apache's classes."""

import pytest

from ottla.errors import BrokenInvariant
from ottla.metadata.features import (
    METADATA_VERSION,
    METADATA_VERSIONS,
    SUPPORTED_FEATURES,
    UNSERVED_FEATURES,
    default_levels,
    loses_records,
    metadata_version_name,
    metadata_version_of,
    record_version,
)
from ottla.wire.messages.metadata_records import BrokerRegistrationChangeRecord


def test_names_lead_to_levels_and_back() -> None:
    for level in METADATA_VERSIONS:
        assert metadata_version_of(metadata_version_name(level)) == level


def test_a_release_stands_for_its_newest_level() -> None:
    assert metadata_version_of("3.7") == 19
    assert metadata_version_of("4.0") == 25
    assert metadata_version_of("4.3") == 30


@pytest.mark.parametrize("name", ["", "4", "4.9", "4.3-IV1", "30", "4.3-"])
def test_unknown_metadata_version_names_have_no_level(name: str) -> None:
    assert metadata_version_of(name) is None


def test_an_unknown_level_is_named_by_its_number() -> None:
    assert metadata_version_name(99) == "99"


def test_supported_features_cover_all_versions_and_nothing_unserved() -> None:
    assert SUPPORTED_FEATURES[METADATA_VERSION] == (min(METADATA_VERSIONS), max(METADATA_VERSIONS))
    assert not set(SUPPORTED_FEATURES) & set(UNSERVED_FEATURES)


def test_defaults_are_supported() -> None:
    for version in METADATA_VERSIONS:
        for name, level in default_levels(version).items():
            low, high = SUPPORTED_FEATURES[name]
            assert low <= level <= high


def test_downgrading_past_a_change_of_records_loses_records() -> None:
    assert loses_records(30, 29)
    assert not loses_records(29, 23)
    assert loses_records(29, 22)
    assert not loses_records(29, 29)


def test_registration_changes_use_the_lowest_version_that_fits() -> None:
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=1)
    assert record_version(change, 30) == 0
    change.in_controlled_shutdown = 1
    assert record_version(change, 30) == 1
    change.log_dirs = [b"d" * 16]  # type: ignore[list-item]  # any 16 bytes
    assert record_version(change, 30) == 2
    with pytest.raises(BrokenInvariant):
        record_version(change, 16)
    change.cordoned_log_dirs = []
    assert record_version(change, 30) == 3
    with pytest.raises(BrokenInvariant):
        record_version(change, 29)
