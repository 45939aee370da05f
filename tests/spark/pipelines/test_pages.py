"""docs/pipelines.md does what it says: its files are written and its commands run, in the order of the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from tests.spark.pipelines.folders import write_pipeline
from tests.spark.pipelines.test_metrics import followed
from tests.support.servers.ottla_cli import Said, run_cli

from ottla import Producer
from ottla.cli.main import ottla
from ottla.cli.pipeline.test import read_cases, run_case
from ottla.schemas import AvroDeserializer, AvroSerializer
from ottla.spark.pipelines.resolution import prepared
from ottla.spark.pipelines.run import Run
from ottla.spark.pipelines.spec import Schedule, read_spec
from ottla.testing import Broker

PAGE = Path(__file__).parents[3] / "docs" / "pipelines.md"
BLOCK = re.compile(r"(?:^`([^`\n]+)`\n\n)?^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
SKIPPED = ("pip install ", "ottla up")
"""How lines begin that set up what the test has already."""
EXCERPTS = {"yaml": "shop/ottla.yml", "python": "shop/transformations/large_orders.py"}
"""Blocks without a name show parts of files that `init` has written."""


def run_line(line: str) -> Said:
    words = shlex.split(line)
    stdin = b""
    if "<" in words:
        stdin = Path(words[words.index("<") + 1]).read_bytes()
        words = words[: words.index("<")]
    assert words[0] == "ottla"
    return run_cli(*words[1:], stdin=stdin)


@pytest.mark.slow
def test_every_block_of_the_page(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, Said] = {}
    monkeypatch.chdir(tmp_path)
    with Broker() as broker:
        monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        for name, kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            if kind == "sh":
                for line in text.splitlines():
                    if not line.startswith(SKIPPED):
                        said[line] = run_line(line)
                        assert said[line].rc == 0, f"{line}\n{said[line].out}{said[line].err}"
            elif name:
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_text(text, encoding="utf-8")
            elif kind in EXCERPTS:
                written = Path(EXCERPTS[kind]).read_text(encoding="utf-8")
                missing = [line for line in text.splitlines() if line not in written.splitlines()]
                assert missing == [], f"{EXCERPTS[kind]} has no such lines"
    assert said["ottla pipeline test shop"].lines[-1] == "1 passed, 0 failed"
    assert '"id":2' in said["ottla consume large-orders --from-beginning --max-messages 2"].out
    assert "customers" in said["ottla pipeline describe shop"].out
    assert re.search(r"shop\s+orders\s+\d", said["ottla groups describe shop"].out)
    tables = sorted(path.name for path in (tmp_path / "shop" / "storage" / "ottla" / "tables").iterdir())
    assert tables == ["customers", "order_history"]


def test_blocks_about_schemas(tmp_path: Path, spark: Any, shared_broker: Broker) -> None:
    blocks = [text for _, kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if "heavy" in text]
    url = shared_broker.schema_registry_url
    fields = [{"name": "city", "type": "string"}, {"name": "weight", "type": "int"}]
    serializer = AvroSerializer(url, {"type": "record", "name": "Shipment", "fields": fields})
    for name in ("shipments", "heavy-shipments"):
        shared_broker.create_topic(name)
    with Producer(shared_broker.bootstrap_servers, value_serializer=serializer) as producer:
        for weight in (1, 101):
            producer.send("shipments", {"city": "Oslo", "weight": weight}).result(30)
    ottla_yml, flow = blocks
    spec = write_pipeline(
        tmp_path, {"heavy.sql": flow}, ottla_yml.replace("http://localhost:8081", url), shared_broker.bootstrap_servers
    )
    with prepared(spec, spark) as resolved:
        Run(resolved, spark, Schedule(), lambda _: None).run()
    (record,) = shared_broker.records("heavy-shipments")
    assert record.value is not None
    assert AvroDeserializer(url).deserialize("heavy-shipments", (), record.value) == {"city": "Oslo", "weight": 101}
    for name in ("shipments", "heavy-shipments"):  # other pages have these names, too
        shared_broker.delete_topic(name)


PRODUCTION_PAGE_PAGE = (Path(__file__).parents[3] / "docs" / "pipelines-in-production.md").read_text(encoding="utf-8")
MANIFESTS = re.findall(r"^```yaml\n(.*?)^```$", PRODUCTION_PAGE_PAGE, flags=re.MULTILINE | re.DOTALL)
IN_YAML = [
    shlex.join(yaml.safe_load(words)) for words in re.findall(r"^ *command: (\[.*\])$", "".join(MANIFESTS), flags=re.MULTILINE)
]
COMMANDS = sorted({*re.findall(r"\bottla (?:pipeline|groups) [^`\"\n]*[^`\"\s]", PRODUCTION_PAGE_PAGE), *IN_YAML})


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_parses(line: str) -> None:
    command: click.Command = ottla
    words = shlex.split(line)[1:]
    context = click.Context(command)
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, line
        command, context = found, click.Context(found, parent=context, info_name=words[0])
        words = words[1:]
    command.make_context(context.info_name, words, parent=context.parent)


def test_manifests_and_metrics_are_what_they_say() -> None:
    assert [yaml.safe_load(text)["kind"] for text in MANIFESTS] == ["CronJob", "Deployment"]
    assert len(IN_YAML) == 2
    served = set(re.findall(r"^# TYPE (\S+)", followed()[0].text().decode(), flags=re.MULTILINE))
    rows: list[str] = re.findall(r"^\| (`ottla_pipeline_.*?) \|", PRODUCTION_PAGE_PAGE, flags=re.MULTILINE)
    named: set[str] = set()
    for row in rows:
        first, *others = re.findall(r"`(\w+)`", row)
        named.add(first)
        named |= {
            next(name for name in served if name.startswith("ottla_pipeline_") and name.endswith(other)) for other in others
        }
    assert named == served


EXAMPLES = sorted(path for path in (Path(__file__).parents[3] / "examples").iterdir() if path.is_dir())
QUICK = {"map"}


@pytest.mark.parametrize(
    "folder", [pytest.param(each, id=each.name, marks=() if each.name in QUICK else pytest.mark.slow) for each in EXAMPLES]
)
def test_example_passes_its_own_tests(folder: Path, spark: Any) -> None:
    spec = read_spec(folder)
    for case in read_cases(folder):
        assert run_case(spec, case, spark) == []
