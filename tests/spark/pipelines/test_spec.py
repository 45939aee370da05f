"""The YAML files of a pipeline, and the sentences for mistakes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines.connections import with_address
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.resolution import prepared
from ottla.spark.pipelines.spec import Connection, Schedule, parse_schedule, read_spec

OTTLA = """\
schedule: every 10s
sources:
  orders: {subscribe: orders, includeHeaders: true, maxOffsetsPerTrigger: 100, assign: {orders: [0]}}
  customers: {format: csv, path: data/customers.csv, schema: "id INT", streaming: false}
sinks:
  out: {topic: out, kafka.bootstrap.servers: "other:9092"}
"""


def test_both_files_make_the_pipeline(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""}, OTTLA)
    assert (spec.name, spec.schedule) == ("shop", Schedule("every", 10))
    assert spec.state == f"{tmp_path}/storage/ottla"
    options = {"subscribe": "orders", "includeHeaders": "true", "maxOffsetsPerTrigger": "100", "assign": '{"orders": [0]}'}
    customers = {"path": f"{tmp_path}/data/customers.csv"}
    assert spec.sources == (
        Connection("orders", "ottla", options),
        Connection("customers", "csv", customers, "id INT", False),
    )
    assert [path.name for path in spec.files()] == ["a.py", "connections.py"]


def test_another_cluster_replaces_every_address(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""}, OTTLA).with_bootstrap("new:1")
    assert spec.configuration == {"kafka.bootstrap.servers": "new:1"}
    assert spec.sinks == (Connection("out", "ottla", {"topic": "out"}),)
    assert spec.with_bootstrap(None) is spec


def test_storage_elsewhere_is_kept_as_it_is(tmp_path: Path) -> None:
    write_pipeline(tmp_path, {"a.py": ""})
    text = (tmp_path / "spark-pipeline.yml").read_text()
    (tmp_path / "spark-pipeline.yml").write_text(text.replace("storage: storage", "storage: s3a://bucket/x/"))
    spec = read_spec(tmp_path / "spark-pipeline.yml")
    assert (spec.state, spec.local_state) == ("s3a://bucket/x/ottla", None)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("spark-pipeline.yml", ("name: shop", "nmae: shop"), "has the key nmae, which is none of .*; did you mean name?"),
        ("spark-pipeline.yml", ("name: shop", "name: shop\nschedule: once"), "it belongs in ottla.yml"),
        ("spark-pipeline.yml", ("storage: storage\n", ""), "has no storage: add a line such as storage: storage"),
        ("spark-pipeline.yml", ("name: shop", "name: ["), "is no YAML in line"),
        ("spark-pipeline.yml", ("transformations/**", "transformations/*.py"), "may only be a file, or a folder with /"),
        ("spark-pipeline.yml", ('"localhost:9092"', "5"), "kafka.bootstrap.servers in configuration is 5: write it in quotes"),
        ("ottla.yml", ("every 10s", "sometimes"), "ottla.yml: schedule is 'sometimes'"),
        ("ottla.yml", ("sinks:", "sink:"), "did you mean sinks?"),
        ("ottla.yml", ("streaming: false", "streaming: perhaps"), "streaming of customers is 'perhaps'"),
        ("ottla.yml", ("{topic: out, kafka.bootstrap.servers: \"other:9092\"}", ""), "out in sinks has no options"),
    ],
)  # fmt: skip
def test_mistake_is_one_sentence_with_the_file(tmp_path: Path, name: str, change: tuple[str, str], sentence: str) -> None:
    write_pipeline(tmp_path, {"a.py": ""}, OTTLA)
    text = (tmp_path / name).read_text()
    assert change[0] in text
    (tmp_path / name).write_text(text.replace(*change))
    with pytest.raises(PipelineError, match=sentence) as raised:
        read_spec(tmp_path)
    assert name in str(raised.value)
    assert "\n" not in str(raised.value)


def test_folder_without_pipeline_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"has no spark-pipeline.yml: `ottla pipeline init NAME`"):
        read_spec(tmp_path)
    with pytest.raises(PipelineError, match="there is no"):
        read_spec(tmp_path / "absent")


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": "", "notes.txt": ""})
    with pytest.raises(PipelineError, match=r"notes.txt is neither a .py nor a .sql file"):
        spec.files()


def test_library_without_files_is_refused(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {})
    with pytest.raises(PipelineError, match=r"includes transformations/\*\*, but .* has no such file"):
        spec.files()


@pytest.mark.parametrize(
    ("text", "expected", "shown"),
    [
        ("once", Schedule("once"), "once"),
        (" Continuous ", Schedule("continuous"), "continuous"),
        ("every 30s", Schedule("every", 30), "every 30s"),
        ("every 1.5 minutes", Schedule("every", 90), "every 90s"),
        ("every 2 hours", Schedule("every", 7200), "every 7200s"),
    ],
)
def test_schedule_is_parsed_and_shown(text: str, expected: Schedule, shown: str) -> None:
    assert parse_schedule(text) == expected
    assert str(expected) == shown


@pytest.mark.parametrize("text", ["", "hourly", "every", "every 5", "every 0s", "every 5 weeks", None])
def test_other_text_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(PipelineError, match="it must be once, continuous, or every with a time, such as every 30s"):
        parse_schedule(text)


def test_triggers_are_those_of_spark() -> None:
    assert Schedule().trigger() == {"availableNow": True}
    assert Schedule("every", 1.5).trigger() == {"processingTime": "1500 milliseconds"}
    assert Schedule("continuous").trigger() == {"processingTime": "0 milliseconds"}


CONNECTIONS_OTTLA = """
sources:
  people: {format: csv, path: people.csv, header: true, schema: "name STRING, age INT", streaming: false}
"""


def test_address_of_the_configuration_is_the_default(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""})
    own = {"kafka.bootstrap.servers": "own:1", "topic": "x"}
    assert with_address(Connection("x", "ottla", {"topic": "x"}), spec)["kafka.bootstrap.servers"] == "localhost:9092"
    assert with_address(Connection("x", "ottla", own), spec) == own
    assert with_address(Connection("x", "csv", {"path": "x"}), spec) == {"path": "x"}


REGISTRY_OTTLA = """
schema_registry: {registry}
sources:
  shipments: {{subscribe: shipments, format: avro, schema.evolution: widen}}
  files: {{format: json, path: data}}
sinks:
  heavy: {{topic: heavy, format: protobuf, schema.registry.url: "http://own:1"}}
  plain: {{topic: plain}}
"""


@pytest.mark.parametrize("registry", ["http://one:1", "{url: 'http://one:1', user_info: 'me:secret'}"])
def test_registry_is_named_once(tmp_path: Path, registry: str) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""}, REGISTRY_OTTLA.format(registry=registry))
    shipments, files = spec.sources
    heavy, plain = spec.sinks
    found = with_address(shipments, spec)
    assert (shipments.format, found["value.format"], found["schema.registry.url"]) == ("ottla", "avro", "http://one:1")
    assert found.get("schema.registry.basic.auth.user.info") == ("me:secret" if "secret" in registry else None)
    assert (files.format, "value.format" in files.options) == ("json", False), "Spark's own format, of files"
    assert with_address(heavy, spec)["schema.registry.url"] == "http://own:1"
    assert "schema.registry.url" not in with_address(plain, spec)


@pytest.mark.parametrize("registry", ["[a]", "{address: x}", "{url: 1}"])
def test_other_registries_are_refused(tmp_path: Path, registry: str) -> None:
    with pytest.raises(PipelineError, match="schema_registry must be an address such as http://localhost:8081"):
        write_pipeline(tmp_path, {"a.py": ""}, REGISTRY_OTTLA.format(registry=registry))


def test_source_that_is_no_stream_is_read_as_a_table(tmp_path: Path, spark: Any) -> None:
    (tmp_path / "people.csv").write_text("name,age\nann,30\nbob,4\n")
    sql = "CREATE MATERIALIZED VIEW adults AS SELECT name FROM people WHERE age > 17"
    with prepared(write_pipeline(tmp_path, {"a.sql": sql}, CONNECTIONS_OTTLA), spark) as resolved:
        assert [row.name for row in resolved.frames["adults"].collect()] == ["ann"]
