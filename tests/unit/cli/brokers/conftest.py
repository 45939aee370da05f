"""The node of these tests: a cluster with a fenced broker."""

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.sick_cluster import sick_node


@pytest.fixture
def node() -> FakeNode:
    return sick_node()
