"""Overlays, `--set`, parameters, variables and secrets of a pipeline's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.spark.pipelines.folders import write_pipeline
from tests.support.servers.ottla_cli import run_cli

from ottla.spark.pipelines.environments import Environment, masked, merged
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.spec import Schedule, read_spec

OTTLA = """\
sources:
  orders: {subscribe: "${TOPIC:-orders}", startingOffsets: earliest}
sinks:
  out: {topic: out, kafka.sasl.password: "${file:secret.txt}"}
  shop: {format: ottla_postgres, url: "postgresql://ann:${DB_PASS:-hunter22}@db/shop", table: t}
"""
PROD = """\
name: shop-prod
storage: /var/shop
schedule: every 1m
configuration: {kafka.bootstrap.servers: "${SERVERS}"}
sources:
  orders: {startingOffsets: null, failOnDataLoss: false}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TOPIC", "SERVERS", "DB_PASS", "OTTLA_ENV"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "secret.txt").write_text("s3cret-word\n")
    write_pipeline(tmp_path, {"a.py": ""}, OTTLA)
    (tmp_path / "ottla.prod.yml").write_text(PROD)
    return tmp_path


def test_overlay_is_merged_key_by_key_and_null_takes_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVERS", "prod:9092")
    spec = read_spec(folder, Environment("prod", ("sinks.out.topic=out-2", "schedule=once"), {"TOPIC": "orders-2"}))
    assert (spec.name, spec.storage, spec.environment) == ("shop-prod", "/var/shop", "prod")
    assert spec.configuration == {"kafka.bootstrap.servers": "prod:9092"}
    assert spec.sources[0].options == {"subscribe": "orders-2", "failOnDataLoss": "false"}
    assert spec.sinks[0].options == {"topic": "out-2", "kafka.sasl.password": "s3cret-word"}
    assert spec.schedule == Schedule("once")
    monkeypatch.setenv("OTTLA_ENV", "prod")  # as under spark-pipelines
    assert read_spec(folder).schedule == Schedule("every", 60)


def test_storage_and_files_of_variables_are_relative_to_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    spec = read_spec(folder, Environment(None, ("storage=elsewhere",)))
    assert spec.storage == str(folder / "elsewhere")
    assert spec.sinks[0].options["kafka.sasl.password"] == "s3cret-word"


@pytest.mark.parametrize(
    ("environment", "change", "sentence"),
    [
        (Environment("test"), "", r"there is no environment test: .* has no ottla.test.yml; there is prod"),
        (
            Environment("prod"),
            "",
            r"ottla.prod.yml: .*servers needs the variable SERVERS, which is not set: export it, give -p",
        ),
        (Environment(), "a: {topic: '${file:none}'}", "sinks.a.topic needs the file none, which is not there: mount it"),
        (Environment(), "a: {topic: '${spark.x}'}", r"which is no variable: write \$\{NAME\}"),
        (Environment(None, ("sources.ordres.subscribe=a",)), "", "sources has no ordres; there are orders"),
        (Environment(None, ("soruces.a.b=1",)), "", "a pipeline has no key soruces; did you mean sources?"),
        (Environment(None, ("schedule",)), "", "--set schedule has no value"),
    ],
)
def test_mistake_is_one_sentence(folder: Path, environment: Environment, change: str, sentence: str) -> None:
    (folder / "ottla.yml").write_text(f"{OTTLA}  {change}\n")
    with pytest.raises(PipelineError, match=sentence):
        read_spec(folder, environment)


def test_doubled_dollar_is_the_text_itself_and_values_add_no_keys(folder: Path) -> None:
    (folder / "ottla.yml").write_text('sinks:\n  a: {topic: "$${X}", other: "${V}"}\n')
    spec = read_spec(folder, Environment(parameters={"V": "1}\nschedule: every 1s"}))
    assert spec.sinks[0].options == {"topic": "${X}", "other": "1}\nschedule: every 1s"}


def test_secrets_are_in_no_text(folder: Path) -> None:
    spec = read_spec(folder, Environment(parameters={"API_TOKEN": "abc"}))
    assert spec.secrets == {"s3cret-word", "hunter22"}
    assert "s3cret" not in repr(spec)
    assert spec.masked("login of s3cret-word at ann:hunter22@db") == "login of *** at ann:***@db"
    assert (masked("abc", {"ab"}), masked("ab", {"ab"})) == ("abc", "***")


def test_merged_lists_are_replaced() -> None:
    assert merged({"a": [1], "b": {"c": 1, "d": 2}}, {"a": [2], "b": {"c": None}}) == {"a": [2], "b": {"d": 2}}


def test_describe_reads_files_and_checkpoints_without_spark_and_hides_secrets(folder: Path) -> None:
    # Nothing listens on the port: describe says so, and shows what is on disk.
    text = "@dp.append_flow(target='out')\ndef copy():\n    return spark.readStream.table('orders')\n"
    spec = write_pipeline(folder, {"a.py": text}, OTTLA, servers="127.0.0.1:1")
    for name, content in (("offsets/0", 'v1\n{}\n{"orders": {"0": 7}, "orders@x": {}}'), ("commits/0", "v1\n{}")):
        path = Path(f"{spec.state}/checkpoints/copy/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    said = run_cli("pipeline", "describe", folder, "--json")
    found = json.loads(said.out)
    assert [(each["flow"], each["reads"], each["target"], each["position"]) for each in found["flows"]] == [
        ("orders", [], "orders", None),
        ("copy", ["orders"], "out", "orders-0: 7"),
    ]
    assert found["flows"][1]["options"]["kafka.sasl.password"] == "***"
    assert "s3cret" not in said.out + said.err
    (problem,) = found["problems"]
    assert "the brokers at 127.0.0.1:1 are away, so the lag is not known: " in problem
    assert not found["isAnalysed"]
