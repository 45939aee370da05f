"""`ottla cluster id`."""

import json

from tests.unit.cli.conftest import RunOttla
from tests.unit.cli.sick_cluster import CLUSTER_ID


def test_the_id_as_kafka_cluster_prints_it(ottla: RunOttla) -> None:
    assert ottla("cluster", "id").lines == [f"Cluster ID: {CLUSTER_ID}"]
    assert ottla("cluster", "cluster-id").lines == [f"Cluster ID: {CLUSTER_ID}"]
    assert ottla("cluster", "id", columns=80).lines == [CLUSTER_ID]
    assert json.loads(ottla("cluster", "id", "--json").out) == {"clusterId": CLUSTER_ID}
