"""The modules of Ottla that are imported within functions, by the start that they would make slower, and what each would cost.

    python tools/lazy_modules.py              measure every row: milliseconds, and how many modules come with it
    python tools/lazy_modules.py node help    those of some starts

Everything else is imported at the head of a file, where a reader finds it. A module gets a row if importing it at the start
takes about a millisecond or more, alone or with others that come for the same reason (TLS, a second voter, metrics).
tests/repo/test_lazy_imports.py holds the table and the code together: what is imported late is here, and no start loads what
it is to be spared. Measured with byte code in place (`python -m compileall src`): without it everything takes two to three
times as long.

The tables of public names (`ottla`, `ottla.aio`, `ottla.errors`, `ottla.env.real`, `ottla.spark`, `ottla.testing`), the list of
commands (`cli/main.py`) and the tables of APIs (`broker/requests/apis.py`, `metadata/controller/apis.py`, `raft/requests`,
`wire/apis.py`) load modules by name. They are tables themselves.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import Final, NamedTuple

NODE: Final = "(a node)"


class Start(NamedTuple):
    """How a process starts, and which modules it does not load."""

    arguments: tuple[str, ...]
    spared: tuple[str, ...]


def _code(text: str) -> tuple[str, ...]:
    return ("-c", text)


def _command(*words: str) -> tuple[str, ...]:
    return ("-m", "ottla", *words)


_TLS = ("env.real.tls", "env.real.tls_connect", "env.real.tls_stream")

STARTS: Final[dict[str, Start]] = {
    # Programs. The import loads no asyncio; the first client does.
    "package": Start(_code("import ottla, ottla.aio"), ("client.other_clients",)),
    "import": Start(
        _code("from ottla import Producer"),
        (
            "client.interceptors",
            "client.link_options",
            "client.patience",
            "client.producer.arrow",
            "client.producer.core",
            "client.prometheus",
            "client.world",
            "client_core.producer.prepared_transactions",
            "config.jaas",
        ),
    ),
    "producer": Start(
        _code("from ottla import Producer; Producer('127.0.0.1:1').close(0)"),
        (
            *_TLS,
            "client.interceptors",
            "client.tokens",
            "client_core.producer.prepared_transactions",
            "client_core.producer.transactions",
            "client_core.telemetry",
            "env.real.tokens",
            "link.login",
            "link.tokens",
        ),
    ),
    "consumer": Start(
        _code("from ottla import Consumer; Consumer('127.0.0.1:1', group_id='g').close()"),
        ("client.interceptors", "client_core.group.consumer_member", "client_core.telemetry", "link.login"),
    ),
    # Commands
    "help": Start(_command("--help"), ("cli.kafka_scripts", "cli.versions", "config.values", "records.kernels")),
    "up": Start(
        _command("up", "--help"),
        (
            "cli.console",
            "cli.logs",
            "cli.node.cluster",
            "cli.node.companions",
            "cli.node.container",
            "cli.node.controlled_node",
            "cli.node.process",
            "cli.node.secure",
            "cli.registry",
            "config.notices",
        ),
    ),
    "topics": Start(
        _command("topics", "list", "--help"),
        (
            *_TLS,
            "cli.common.tables",
            "cli.quotas",
            "client.admin.quorum",
            "client.tokens",
            "env.real.tokens",
            "records.kernels",
        ),
    ),
    "produce": Start(_command("produce", "--help"), ("cli.produce.run", "client.interceptors")),
    "consume": Start(_command("consume", "--help"), ("cli.consume.run", "client.admin.topic_descriptions")),
    "dump-log": Start(_command("dump-log", "--help"), ("cli.dump_log.table",)),
    "quorum": Start(_command("quorum", "--help"), ("config.broker", "env.real.world")),
    "check": Start(
        _command("check", "--help"),
        (
            "broker.checks.table",
            "broker.solo_settings",
            "cli.check.measure",
            "cli.check.peer",
            "cli.check.plan",
            "cli.common.connection",
            "cli.storage",
            "client.api_versions",
            "env.real.system",
        ),
    ),
    "console": Start(
        _command("console", "--help"),
        ("console", "console.access", "console.app", "console.config", "console.masking", "console.server", "console.text"),
    ),
    # Their packages come with the registry's extra, which a console without a registry does not have.
    "console pages": Start(_code("import ottla.console.app"), ("schemas.avro", "schemas.json_schema", "schemas.protobuf")),
    "registry": Start(_command("registry", "--help"), ("registry.group", "registry.server")),
    "quotas": Start(_command("quotas", "--help"), ("cli.users",)),
    "storage": Start(
        _command("storage", "--help"), ("broker.formatting", "config.broker", "env.real.certificates", "env.real.world")
    ),
    "pipeline": Start(
        _command("pipeline", "--help"),
        (
            "spark.dead_letters",
            "spark.java",
            "spark.pipelines.backfill",
            "spark.pipelines.resolution",
            "spark.pipelines.run",
            "spark.progress.listener",
        ),
    ),
    "sql": Start(
        _command("sql", "--help"),
        ("cli.common.tables", "spark.datasource", "spark.sql.frames", "spark.sql.live"),
    ),
    # A node with both roles, alone and without TLS, as most are: `ottla up`
    "node": Start(
        (NODE,),
        (
            *_TLS,
            "broker.channel.links",
            "broker.channel.remote",
            "broker.client_telemetry",
            "broker.handlers.data.produce_schemas",
            "broker.metrics",
            "broker.metrics_server",
            "broker.replication.fetcher",
            "broker.replication.isr_changes",
            "broker.runtime.coordinators.groups",
            "broker.runtime.coordinators.transactions",
            "broker.runtime.quorum_links",
            "env.real.key_sets",
            "env.real.schema_registry",
            "env.real.supervisor",
            "link",
            "link.security",
            "metadata.controller.delegation_tokens",
            "metadata.controller.elections",
            "raft.requests.add_raft_voter",
            "raft.requests.api_versions",
            "raft.requests.begin_quorum_epoch",
            "raft.requests.end_quorum_epoch",
            "raft.requests.fetch",
            "raft.requests.fetch_snapshot",
            "raft.requests.remove_raft_voter",
            "raft.requests.update_raft_voter",
            "raft.requests.vote",
            "raft.requests.voter_changes",
            "records.compression.lz4",
        ),
    ),
    # Users' tests: every run of pytest loads the plugin, and most start one broker
    "pytest": Start(_code("import ottla.testing.pytest_plugin"), ("errors", "testing.broker")),
    "broker": Start(
        _code("from ottla.testing import Broker; Broker()"),
        (
            "client.admin.acls",
            "config.client",
            "config.notices",
            "config.topic_keys",
            "env.real.certificates",
            "registry.group",
            "registry.server",
            "testing.client",
            "testing.faults",
            "testing.process_host",
            "testing.topic_reader",
            "testing.thread_host",
        ),
    ),
    "test helpers": Start(_code("import ottla.testing.client"), ("client.once", "records.builder")),
    "schemas": Start(_code("import ottla.schemas.protobuf"), ("schemas.languages", "schemas.languages.protobuf")),
    # Spark: a program with it, and a task, which has a Python process of its own
    "spark": Start(
        _code("import ottla.spark"), ("spark.class_archive", "spark.clients", "spark.session", "spark.tables.each_batch")
    ),
    "task": Start(
        _code("import ottla.spark.datasource"),
        (
            "schemas",
            "schemas.protobuf",
            "spark.decoding.avro",
            "spark.pipelines.connections",
            "spark.pipelines.counts",
            "spark.registry.avro",
            "spark.registry.reading",
            "spark.registry.writing",
            "spark.sink.writers",
            "spark.source.readers",
        ),
    ),
}

EXCEPTIONS: Final = {
    "broker.broker_role": "a controller alone has none of it; the process of a broker imports it early",
    "broker.handlers.data.produce_in_transaction": "with produce",
    "broker.handlers.fast_path.produce_frames": "with produce",
    "cli.common.settings": "with the other two that a check of another node needs",
    "config.broker": "with zookeeper_era",
    "config.broker_keys": "with the hints for misspelled names, which programs with other mistakes do without",
    "config.client.names": "with given",
    "config.zookeeper_era": "with broker",
    "wire.binding": "with codec",
    "wire.compiler": "with codec",
}
"""Modules that use each other, so that one of the two imports late; and what only other starts do without."""


def loaded_by(start: Start) -> list[str]:
    """The modules of Ottla that a process has loaded when it has started, in the order in which they were complete."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = _command("up", "--port", "0", "--json", "--data", folder) if start.arguments == (NODE,) else start.arguments
        with subprocess.Popen(
            [sys.executable, "-X", "importtime", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            if start.arguments == (NODE,):
                ready = ""
                names = []
                while not ready:
                    ready = process.stdout.readline()
                process.terminate()
            errors = process.communicate()[1]
    names = [line.rpartition("|")[2].strip() for line in errors.splitlines() if line.startswith("import time:")]
    return [name for name in names if name == "ottla" or name.startswith("ottla.")]


_MEASURE = """
import importlib, sys, time
target, *before = sys.argv[1:]
for name in before:
    importlib.import_module(name)
known, began = set(sys.modules), time.perf_counter()
importlib.import_module(target)
print((time.perf_counter() - began) * 1e3, len(set(sys.modules) - known))
"""


def cost_of(target: str, loaded: list[str]) -> tuple[float, int]:
    """Milliseconds to import a module after those that are `loaded`, the best of three, and how many come with it."""
    best_ms, count = float("inf"), 0
    for _ in range(3):
        ran = subprocess.run(
            [sys.executable, "-c", _MEASURE, f"ottla.{target}", *loaded], capture_output=True, text=True, check=True
        )
        took_ms, came = ran.stdout.split()[-2:]
        best_ms, count = min(best_ms, float(took_ms)), int(came)
    return best_ms, count


def main(chosen: list[str]) -> None:
    for name in chosen or STARTS:
        start = STARTS[name]
        loaded = [each for each in loaded_by(start) if each != "ottla.__main__"]
        print(f"{name}: {len(loaded)} modules")
        for target in start.spared:
            took_ms, count = cost_of(target, loaded)
            print(f"    {target:48} {took_ms:7.1f} ms {count:5} modules")


if __name__ == "__main__":
    main(sys.argv[1:])
