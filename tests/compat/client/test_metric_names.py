"""The names of the clients' metrics beside those of Apache Kafka's own clients."""

from fnmatch import fnmatch

import pytest
from tests.support.servers.apache_kafka import ApacheKafka

from ottla import Admin
from ottla.client_core.metrics.table import ABSENT, FIXED_TABLES, connection_table, node_table

KINDS = ("producer", "consumer", "admin-client")
Name = tuple[str, frozenset[str], str]
"""Group, tags and name."""


def our_names() -> set[Name]:
    tables = (*FIXED_TABLES, *(make(kind) for make in (connection_table, node_table) for kind in KINDS))
    return {(table.group, frozenset(table.tag_names), row.name) for table in tables for row in table.rows}


def apaches_names(apache_kafka: ApacheKafka) -> set[Name]:
    with apache_kafka.start_server({}) as server:
        with Admin(server.bootstrap) as admin:
            admin.create_topics({"measured": 1}).raise_first()
        output = apache_kafka.run_java("ClientMetrics.java", server.bootstrap, "measured").stdout
    lines = [line.split("\t") for line in output.splitlines()]
    return {(group, frozenset(filter(None, tags.split(","))), name) for _, group, tags, name in lines}


ABSENT_PATTERNS = [each for names in ABSENT for each in names.split(", ")]


def matches(name: Name, pattern: str) -> bool:
    return fnmatch(name[2], pattern) or name[0] == pattern


@pytest.mark.slow
def test_every_metric_of_apaches_clients_is_there_or_absent_for_a_reason(apache_kafka: ApacheKafka) -> None:
    ours, theirs = our_names(), apaches_names(apache_kafka)
    absent = theirs - ours
    assert {name for name in absent if not any(matches(name, each) for each in ABSENT_PATTERNS)} == set()
    assert ours - theirs == set(), "names that Kafka does not have"
    assert [each for each in ABSENT_PATTERNS if not any(matches(name, each) for name in absent)] == []
