"""A cluster that the tests of this folder share; each finds it healthy."""

from collections.abc import Iterator

import pytest

from ottla.testing import Cluster


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """One cluster for all tests of the folder: started, resumed and healed at the beginning of each."""
    shared_cluster.heal()
    for node in shared_cluster.nodes:
        node.resume()
    shared_cluster.start()
    shared_cluster.wait_until_healthy()
    return shared_cluster
