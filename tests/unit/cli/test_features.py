"""`ottla features`: levels are shown and changed; what a release stands for."""

import json
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode, all_versions
from tests.unit.cli.conftest import WHERE, RunOttla

from ottla.cli.features import release_levels
from ottla.errors.codes import ErrorCode
from ottla.wire.messages import api_versions
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


@pytest.fixture
def node(node: FakeNode) -> FakeNode:
    def versions(request: Any, version: int) -> api_versions.ApiVersionsResponse:
        return api_versions.ApiVersionsResponse(
            api_keys=all_versions(),
            supported_features=[
                api_versions.SupportedFeatureKey(name="metadata.version", min_version=7, max_version=30),
                api_versions.SupportedFeatureKey(name="group.version", min_version=0, max_version=1),
            ],
            finalized_features=[
                api_versions.FinalizedFeatureKey(name="metadata.version", max_version_level=27, min_version_level=27)
            ],
            finalized_features_epoch=5,
        )

    node.handlers[ApiVersionsRequest] = versions
    node.handlers[UpdateFeaturesRequest] = lambda request, version: UpdateFeaturesResponse()
    return node


@pytest.fixture
def network(node: FakeNode) -> FakeNetwork:
    return FakeNetwork({WHERE: node})


def changes(node: FakeNode) -> list[tuple[str, int, int, bool]]:
    return [
        (each.feature, each.max_version_level, each.upgrade_type, request.validate_only)
        for request in node.asked_for(UpdateFeaturesRequest)
        for each in request.feature_updates
    ]


def test_levels_are_described_in_kafkas_lines_and_as_json(ottla: RunOttla) -> None:
    said = ottla("features", "describe")
    assert [line.split() for line in said.lines] == [
        [
            "Feature:",
            name,
            "SupportedMinVersion:",
            low,
            "SupportedMaxVersion:",
            high,
            "FinalizedVersionLevel:",
            at,
            "Epoch:",
            "5",
        ]
        for name, low, high, at in (("group.version", "0", "1", "0"), ("metadata.version", "3.3-IV3", "4.3-IV0", "4.1-IV1"))
    ]
    (group, metadata) = json.loads(ottla("features", "describe", "--json").out)["features"]
    assert (group["level"], group["supported"]) == (0, [0, 1])
    assert (metadata["level"], metadata["levelName"]) == (27, "4.1-IV1")
    assert "4.1-IV1" in ottla("features", "describe", columns=100).out


def test_levels_are_raised_and_lowered(ottla: RunOttla, node: FakeNode) -> None:
    assert ottla("features", "upgrade", "--release-version", "4.3").lines == [
        "metadata.version was upgraded to 4.3-IV0.",
        "group.version was upgraded to 1.",
    ]
    dry = ottla("features", "downgrade", "--metadata", "4.2-IV1", "--unsafe", "--dry-run")
    assert dry.lines == ["metadata.version can be downgraded to 4.2-IV1."]
    assert ottla("features", "disable", "--feature", "group.version").lines == ["group.version was disabled."]
    assert changes(node) == [
        ("metadata.version", 30, 1, False),
        ("group.version", 1, 1, False),
        ("metadata.version", 29, 3, True),
        ("group.version", 0, 2, False),
    ]


def test_a_refusal_is_told_for_each_feature(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[UpdateFeaturesRequest] = lambda request, version: UpdateFeaturesResponse(
        error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="broker 2 is too old"
    )
    said = ottla("features", "upgrade", "--feature", "group.version=1")
    assert said.rc == 1
    first, last = said.err.splitlines()
    assert first.startswith("ottla: Could not upgrade group.version to 1: ")
    assert "broker 2 is too old" in first
    assert last == "ottla: 1 out of 1 operation(s) failed."


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("upgrade",), "say what to upgrade"),
        (("upgrade", "--metadata", "9.9"), "there is no metadata.version '9.9'"),
        (("upgrade", "--release-version", "4.3", "--metadata", "4.3"), "give it alone"),
        (("upgrade", "--feature", "group.version"), "should be a feature and its level"),
    ],
)
def test_wrong_usage_is_explained(ottla: RunOttla, arguments: tuple[str, ...], text: str) -> None:
    said = ottla("features", *arguments)
    assert said.rc == 2
    assert text in said.err


def test_a_release_stands_for_the_levels_that_the_cluster_supports() -> None:
    both = {"group.version": None, "transaction.version": None}
    assert release_levels("3.9", "upgrade", both) == {"metadata.version": 21}
    assert release_levels("3.9", "downgrade", both) == {"metadata.version": 21, "group.version": 0, "transaction.version": 0}
