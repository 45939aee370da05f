"""`ottla configs`: how resources are named, and the requests that are sent."""

import json

import click
import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.cli.configs import parse_grouped_pairs
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@pytest.fixture
def configured(node: FakeNode) -> FakeNode:
    def show(request: DescribeConfigsRequest, version: int) -> DescribeConfigsResponse:
        own = {2: 1, 4: 2, 8: 6, 16: 7, 32: 8}
        results = []
        for each in request.resources:
            source = own[each.resource_type] if each.resource_name else 3
            shown = [
                DescribeConfigsResourceResult(
                    name="b.own",
                    value="1",
                    config_source=source,
                    synonyms=[DescribeConfigsSynonym(name="b.own", value="1", source=source)],
                ),
                DescribeConfigsResourceResult(name="a.default", value=None, config_source=5, is_sensitive=True),
                DescribeConfigsResourceResult(name="c.newer", value="x", config_source=99),
            ]
            results.append(
                DescribeConfigsResult(resource_type=each.resource_type, resource_name=each.resource_name, configs=shown)
            )
        return DescribeConfigsResponse(results=results)

    def change(request: IncrementalAlterConfigsRequest, version: int) -> IncrementalAlterConfigsResponse:
        (each,) = request.resources
        answer = AlterConfigsResourceResponse(resource_type=each.resource_type, resource_name=each.resource_name)
        return IncrementalAlterConfigsResponse(responses=[answer])

    node.handlers |= {DescribeConfigsRequest: show, IncrementalAlterConfigsRequest: change}
    return node


@pytest.mark.parametrize(
    ("arguments", "resource"),
    [
        (("topic", "orders"), (2, "orders")),
        (("topics", "orders"), (2, "orders")),
        (("--topic", "orders"), (2, "orders")),
        (("--entity-type", "topics", "--entity-name", "orders"), (2, "orders")),
        (("broker", "1"), (4, "1")),
        (("--broker", "1"), (4, "1")),
        (("broker-defaults",), (4, "")),
        (("--broker-defaults",), (4, "")),
        (("--entity-type", "brokers", "--entity-default"), (4, "")),
        (("broker-logger", "1"), (8, "1")),
        (("--client-metrics", "m"), (16, "m")),
        (("group", "g"), (32, "g")),
    ],
)
def test_both_spellings_name_the_same_resource(
    ottla: RunOttla, configured: FakeNode, arguments: tuple[str, ...], resource: tuple[int, str]
) -> None:
    said = ottla("configs", "describe", *arguments)
    assert said.rc == 0, said.err
    (asked,) = configured.asked_for(DescribeConfigsRequest)
    assert [(each.resource_type, each.resource_name) for each in asked.resources] == [resource]
    assert len(said.lines) == 2, "only settings of the resource itself"
    assert ottla("configs", "alter", *arguments, "--set", "x=1").rc == 0


def test_all_shows_every_setting(ottla: RunOttla, configured: FakeNode) -> None:
    assert ottla("configs", "describe", "topic", "orders", "--all").lines == [
        "All configs for topic orders are:",
        "  a.default=null sensitive=true synonyms={}",
        "  b.own=1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:b.own=1}",
        "  c.newer=x sensitive=false synonyms={}",
    ]
    (shown,) = json.loads(ottla("configs", "describe", "topic", "orders", "--all", "--json").out)
    assert [each["source"] for each in shown["configs"]] == ["DEFAULT_CONFIG", "DYNAMIC_TOPIC_CONFIG", "UNKNOWN"]


def test_without_a_name_all_resources_of_the_kind_are_shown(ottla: RunOttla, configured: FakeNode) -> None:
    assert ottla("configs", "describe", "topics").lines[0] == "Dynamic configs for topic orders are:"
    lines = ottla("configs", "--describe", "--entity-type", "brokers").lines
    assert [line for line in lines if line.endswith(":")] == [
        "Dynamic configs for broker 1 are:",
        "Default configs for brokers in the cluster are:",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("describe",), "name one resource"),
        (("describe", "topic", "a", "--broker", "1"), "name one resource"),
        (("describe", "--entity-name", "a"), "need an --entity-type"),
        (("describe", "--entity-type", "topics", "--entity-default"), "only brokers have them"),
        (("describe", "broker", "one"), "a broker is named by its id"),
        (("describe", "--entity-type", "users", "--entity-type", "topics"), "cannot be named together"),
        (("describe", "--entity-type", "users", "--entity-type", "clients", "--entity-name", "a"), "needs its --entity-name"),
        (("alter", "users", "--set", "producer_byte_rate=1"), "name whose quotas to change"),
        (("alter", "--user", "alice", "--set", "retention.ms=1"), "retention.ms is no quota"),
        (("alter", "--user", "alice", "--set", "producer_byte_rate=much"), "is no limit"),
        (("alter", "--client", "app", "--add-config", "SCRAM-SHA-256=[password=x]"), "apart from quotas"),
        (("describe", "shoes"), "shoes have no settings"),
        (("alter", "topics"), "name the topic whose settings to change"),
        (("alter", "topic", "a"), "say what to change"),
        (("alter", "topic", "a", "--set", "x=1", "--unset", "x"), "x cannot be both set and unset"),
        (("alter", "topic", "a", "--add-config", "x"), "--add-config takes KEY=VALUE"),
        (("alter", "topic", "a", "--add-config", "x=1", "--add-config-file", "y"), "not both"),
    ],
)
def test_wrong_usage(ottla: RunOttla, configured: FakeNode, arguments: tuple[str, ...], said: str) -> None:
    refused = ottla("configs", *arguments)
    assert refused.rc == 2
    assert said in " ".join(refused.err.split())


def test_all_changes_go_in_one_request(ottla: RunOttla, configured: FakeNode) -> None:
    flags = ("--set", "a=1", "--unset", "b", "--add-config", "c=[x,y],d=", "--delete-config", "e, f")
    assert ottla("configs", "alter", "topic", "orders", *flags).out == "Completed updating config for topic orders.\n"
    (request,) = configured.asked_for(IncrementalAlterConfigsRequest)
    changes = [(each.name, each.config_operation, each.value) for each in request.resources[0].configs]
    assert changes == [("a", 0, "1"), ("c", 0, "x,y"), ("d", 0, ""), ("b", 1, None), ("e", 1, None), ("f", 1, None)]


def test_values_in_brackets_keep_their_commas() -> None:
    assert parse_grouped_pairs("a=1,b=[x,y],c=[z]") == {"a": "1", "b": "x,y", "c": "z"}
    assert parse_grouped_pairs("a=b=c") == {"a": "b=c"}
    with pytest.raises(click.UsageError):
        parse_grouped_pairs("a=1,b")


def test_duration_becomes_the_number_of_milliseconds() -> None:
    from ottla.cli.configs import in_milliseconds

    given = {"retention.ms": "1h", "segment.ms": "1000", "retention.bytes": "1h", "flush.ms": "-1"}
    assert in_milliseconds(given) == given | {"retention.ms": "3600000"}
