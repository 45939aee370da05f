"""The API table against the schemas it must agree with."""

from pathlib import Path

import pytest
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.wire.apis import APIS, Api, ApiKey
from ottla.wire.binding import binding_of
from ottla.wire.headers import request_header_version, response_header_version
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse

PRESENT = [api for api in APIS.values() if not api.is_removed]


def test_keys_are_complete() -> None:
    assert list(APIS) == list(range(93))
    assert [api.name for api in APIS.values() if api.is_removed] == [
        "LeaderAndIsr",
        "StopReplica",
        "UpdateMetadata",
        "ControlledShutdown",
    ]
    assert ApiKey.DELETE_SHARE_GROUP_OFFSETS == 92


@pytest.mark.parametrize("api", PRESENT, ids=lambda api: api.name)
def test_table_agrees_with_the_schemas(api: Api) -> None:
    for cls in (api.request_class, api.response_class):
        schema = binding_of(cls).schema
        assert (schema.key, cls.KEY) == (api.key, api.key)
        assert tuple(schema.versions) == (api.oldest, api.newest)
        assert all(schema.is_flexible(version) == api.is_flexible(version) for version in range(api.oldest, api.newest + 1))
    assert binding_of(api.request_class).schema.listeners == api.listeners
    assert binding_of(api.request_class).schema.is_latest_unstable == api.is_latest_unstable


def test_classes_are_found_by_key() -> None:
    assert APIS[ApiKey.PRODUCE].request_class is ProduceRequest
    assert APIS[ApiKey.PRODUCE].response_class is ProduceResponse
    with pytest.raises(LookupError, match="LeaderAndIsr was removed"):
        _ = APIS[ApiKey.LEADER_AND_ISR].request_class


def test_what_is_advertised() -> None:
    assert APIS[ApiKey.PRODUCE].advertised() == (0, 13)
    assert not APIS[ApiKey.PRODUCE].has_version(2)
    assert APIS[ApiKey.INIT_PRODUCER_ID].advertised() == (0, 5)
    assert APIS[ApiKey.INIT_PRODUCER_ID].advertised(unstable=True) == (0, 6)
    assert APIS[ApiKey.FETCH].advertised() == (4, 18)
    assert [api.name for api in APIS.values() if api.is_latest_unstable] == ["InitProducerId"]


def test_flags() -> None:
    assert APIS[ApiKey.CREATE_TOPICS].is_forwardable
    assert not APIS[ApiKey.CREATE_TOPICS].is_cluster_action
    assert APIS[ApiKey.VOTE].is_cluster_action
    assert repr(APIS[ApiKey.VOTE]) == "Api(52 Vote 0-2)"


PRINT_APIS = """
import org.apache.kafka.common.protocol.ApiKeys;

public class PrintApis {
    public static void main(String[] arguments) {
        for (var api : ApiKeys.values()) {
            var line = new StringBuilder(api.id + " " + api.name + " " + api.clusterAction + " " + api.forwardable);
            if (api.hasValidVersion()) {
                line.append(" " + api.oldestVersion() + " " + api.latestVersion(true) + " " + api.latestVersion(false));
                for (short version = api.oldestVersion(); version <= api.latestVersion(true); version++)
                    line.append(" " + api.requestHeaderVersion(version) + ":" + api.responseHeaderVersion(version));
            }
            System.out.println(line);
        }
    }
}
"""


@pytest.mark.slow
def test_same_as_apache_kafka(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    source = tmp_path / "PrintApis.java"
    source.write_text(PRINT_APIS)
    theirs = apache_kafka.run_java(source).stdout.splitlines()
    assert [line_of(api) for api in APIS.values()] == theirs


def line_of(api: Api) -> str:
    line = f"{api.key} {api.name} {api.is_cluster_action} {api.is_forwardable}".replace("True", "true").replace(
        "False", "false"
    )
    if api.is_removed:
        return line
    versions = range(api.oldest, api.newest + 1)
    headers = " ".join(f"{request_header_version(api.key, v)}:{response_header_version(api.key, v)}" for v in versions)
    return f"{line} {api.oldest} {api.newest} {api.advertised()[1]} {headers}"
