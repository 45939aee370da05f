"""AlterConfigs and IncrementalAlterConfigs: one response entry per resource, in the order of the request."""

from tests.support.nodes.controller_cluster import ControllerCluster

from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.config_responses import alter_configs, incremental_alter_configs
from ottla.metadata.image.image import ResourceType
from ottla.wire.messages import alter_configs as alter
from ottla.wire.messages import incremental_alter_configs as incremental

TOPIC = int(ResourceType.TOPIC)


def prepared() -> ControllerCluster:
    cluster = ControllerCluster()
    cluster.add_broker(1)
    cluster.create_topic("t", 1, 1, configs={"retention.ms": "5"})
    return cluster


def test_alter_configs_replaces_and_reports_each_resource() -> None:
    cluster = prepared()
    resources = [
        alter.AlterConfigsResource(
            resource_type=TOPIC, resource_name=name, configs=[alter.AlterableConfig(name="segment.ms", value="7")]
        )
        for name in ("absent", "t")
    ]
    response = cluster.apply(alter_configs(cluster.state, alter.AlterConfigsRequest(resources=resources), 0))
    assert [(each.resource_name, each.error_code) for each in response.responses] == [
        ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", ErrorCode.NONE),
    ]
    assert response.responses[0].error_message == "there is no topic absent"
    assert response.responses[1].error_message is None
    assert cluster.state.image.configs[TOPIC, "t"] == {"segment.ms": "7"}


def test_incremental_change_reports_each_resource() -> None:
    cluster = prepared()
    resources = [
        incremental.AlterConfigsResource(
            resource_type=TOPIC, resource_name=name, configs=[incremental.AlterableConfig(name="segment.ms", value=value)]
        )
        for name, value in (("t", "7"), ("absent", "7"))
    ]
    request = incremental.IncrementalAlterConfigsRequest(resources=resources)
    response = cluster.apply(incremental_alter_configs(cluster.state, request, 0))
    assert [each.error_code for each in response.responses] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert cluster.state.image.configs[TOPIC, "t"] == {"retention.ms": "5", "segment.ms": "7"}
