"""The Helm chart: linted by helm, its manifests decoded with Kubernetes' own types, its start script run."""

import http.server
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import Unavailable
from tests.support.servers.go_programs import GoUnavailable, build_go_program, install_go_tool

import ottla
from ottla.config.broker import BrokerConfig

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "ottla"
HELM = ("helm.sh/helm/v3/cmd/helm", "v3.18.4")
EXTERNAL = {"external.enabled": "true", "external.type": "LoadBalancer", "external.host": "kafka-{{ .ordinal }}.example.com"}


def test_the_chart_is_for_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == re.sub(r"\.dev\d+$", "", ottla.__version__)


def test_the_schema_knows_every_value() -> None:
    values, schema = yaml.safe_load((CHART / "values.yaml").read_text()), json.loads((CHART / "values.schema.json").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}
    used = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    assert [name for name in values if f".Values.{name}" not in used] == []


@pytest.fixture(scope="module")
def helm() -> Path:
    try:
        return install_go_tool(*HELM)
    except GoUnavailable as reason:
        raise Unavailable(str(reason)) from None


@pytest.fixture(scope="module")
def decode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build_go_program("manifests", tmp_path_factory.mktemp("go"))
    except GoUnavailable as reason:
        raise Unavailable(str(reason)) from None


def run_helm(helm: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([helm, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=180)


def rendered(helm: Path, values: dict[str, str], settings: dict[str, Any] | None = None) -> str:
    """The manifests of a release `shop` in the namespace `prod`."""
    sets = [f"--set={name}={value}" for name, value in values.items()]
    sets += [f"--set-json=settings={json.dumps(settings)}"] if settings else []
    done = run_helm(helm, "template", "shop", CHART, "--namespace", "prod", "--kube-version", "1.32", *sets)
    assert done.returncode == 0, done.stderr
    return done.stdout


def manifest(text: str, kind: str, name: str = "shop-ottla") -> dict[str, Any]:
    return next(each for each in yaml.safe_load_all(text) if each and each["kind"] == kind and each["metadata"]["name"] == name)


@pytest.mark.slow  # builds helm
def test_helm_finds_nothing_wrong_and_wrong_values_are_refused(helm: Path) -> None:
    done = run_helm(helm, "lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout + done.stderr
    for wrong, sentence in (
        ("replica=3", "replica"),
        ("replicas=1", "controllers is 3 and replicas 1"),
        ("external.enabled=true,external.type=LoadBalancer", "external.host: a LoadBalancer needs a name for each node"),
    ):
        refused = run_helm(helm, "template", "shop", CHART, "--kube-version", "1.32", "--set", wrong)
        assert refused.returncode != 0, wrong
        assert sentence in refused.stderr


@pytest.mark.slow  # builds helm, and a program in Go
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"replicas": "1", "controllers": "1", "rack.enabled": "false", "podDisruptionBudget.enabled": "false"},
        {"external.enabled": "true", "metrics.serviceMonitor.enabled": "true", "settingsSecret": "kafka-settings"},
        EXTERNAL
        | {"persistence.storageClass": "fast", "spread.zones": "required", "external.annotations.dns": "node-{{ .ordinal }}"},
    ],
)
def test_manifests_are_what_kubernetes_takes(helm: Path, decode: Path, values: dict[str, str]) -> None:
    text = rendered(helm, values)
    done = subprocess.run([decode], input=text, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    found = done.stdout.splitlines()
    assert "StatefulSet shop-ottla" in found
    assert ("PodDisruptionBudget shop-ottla" in found) == (values.get("podDisruptionBudget.enabled") != "false")
    assert ("ServiceMonitor shop-ottla (of another API: not checked)" in found) == ("metrics.serviceMonitor.enabled" in values)
    assert sum(each.endswith("-external") for each in found) == (3 if "external.enabled" in values else 0)
    wrong = subprocess.run(
        [decode], input=text.replace("podManagementPolicy:", "podManagement:"), capture_output=True, text=True, check=False
    )
    assert 'unknown field "podManagement"' in wrong.stderr


def settings_of(helm: Path, ordinal: int, values: dict[str, str], folder: Path) -> dict[str, str]:
    """The settings that the pod's variables and its start script make for one node."""
    text = rendered(helm, values | {"rack.enabled": "false"}, {"log.segment.bytes": 1073741824, "log.retention.hours": 24})
    container = manifest(text, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    variables = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    variables |= {
        "POD_NAME": f"shop-ottla-{ordinal}",
        "POD_NAMESPACE": "prod",
        "MACHINE_IP": "10.0.0.7",
        "PATH": os.environ["PATH"],
    }
    script = folder / "start.sh"
    script.write_text(manifest(text, "ConfigMap")["data"]["start.sh"].replace("exec /etc/kafka/docker/run", "exec env"))
    done = subprocess.run(["sh", script], env=variables, capture_output=True, text=True, check=True, timeout=60)
    lines = dict(line.split("=", 1) for line in done.stdout.splitlines())
    return {name[6:].lower().replace("_", "."): value for name, value in lines.items() if name.startswith("KAFKA_")}


@pytest.mark.slow  # builds helm
def test_each_node_gets_settings_that_it_starts_with(helm: Path, tmp_path: Path) -> None:
    first = settings_of(helm, 0, EXTERNAL | {"replicas": "4"}, tmp_path)
    config = BrokerConfig.from_settings(first)
    assert (config.node_id, config.is_controller, config.is_broker) == (0, True, True)
    assert first["advertised.listeners"] == (
        "CLIENT://shop-ottla-0.shop-ottla-nodes.prod.svc:9092,EXTERNAL://kafka-0.example.com:9094"
    )
    assert first["controller.quorum.voters"].startswith("0@shop-ottla-0.shop-ottla-nodes.prod.svc:9093,1@")
    assert (first["log.segment.bytes"], first["min.insync.replicas"]) == ("1073741824", "2")
    fourth = BrokerConfig.from_settings(settings_of(helm, 3, EXTERNAL | {"replicas": "4"}, tmp_path))
    assert (fourth.node_id, fourth.is_controller) == (3, False)
    on_node_port = settings_of(helm, 2, {"external.enabled": "true"}, tmp_path)
    assert on_node_port["advertised.listeners"].endswith(",EXTERNAL://10.0.0.7:31094")
    alone = settings_of(helm, 0, {"replicas": "1", "controllers": "1"}, tmp_path)
    assert alone["default.replication.factor"] == alone["min.insync.replicas"] == "1"


@pytest.mark.slow  # builds helm
def test_scaling_changes_no_pod_and_no_cluster_id(helm: Path) -> None:
    three, five = (manifest(rendered(helm, EXTERNAL | {"replicas": count}), "StatefulSet") for count in ("3", "5"))
    assert three["spec"]["template"] == five["spec"]["template"]


@pytest.mark.slow  # builds helm
def test_the_zone_is_read_from_the_machine(helm: Path, tmp_path: Path) -> None:
    asked: list[str] = []

    class Api(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers['Authorization']}")
            status = 200 if self.path.endswith("/machine-7") else 403
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps({"metadata": {"labels": {"topology.kubernetes.io/zone": "eu-1b"}}}).encode())

        def log_message(self, *_: Any) -> None: ...

    (tmp_path / "token").write_text("secret\n")
    source = manifest(rendered(helm, {}), "ConfigMap")["data"]["rack.py"]
    # The API server of the test has no certificate.
    source = source.replace("https://", "http://").replace("/var/run/secrets/kubernetes.io/serviceaccount", str(tmp_path))
    source = re.sub(r", context=ssl\..*?\"\)", "", source)
    server = http.server.HTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.server_port)}

    def zone(machine: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", source], env=environment | {"MACHINE": machine}, capture_output=True, text=True, check=False
        )

    try:
        assert zone("machine-7").stdout == "eu-1b\n"
        assert asked == ["/api/v1/nodes/machine-7 Bearer secret"]
        refused = zone("machine-8")
        assert refused.returncode == 1
        assert "cannot read the zone of machine-8: HTTP Error 403" in refused.stderr
    finally:
        server.shutdown()
        server.server_close()


PAGE = (CHART.parents[2] / "docs" / "kubernetes.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^helm (?:install|upgrade) (\w+) deploy/helm/ottla ?(.*)$", PAGE, flags=re.MULTILINE)


@pytest.mark.slow  # builds helm
def test_commands_and_values_of_the_page_render(helm: Path, decode: Path, tmp_path: Path) -> None:
    (values,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "values.yaml").write_text(values)
    assert len(COMMANDS) == 4
    for release, flags in [*COMMANDS, ("shop", f"--values {tmp_path}/values.yaml")]:
        words = [each for each in shlex.split(flags) if each != "--create-namespace"]
        done = run_helm(helm, "template", release, CHART, "--kube-version", "1.27", *words)
        assert done.returncode == 0, done.stderr
        read = subprocess.run([decode], input=done.stdout, capture_output=True, text=True, check=False, timeout=180)
        assert read.returncode == 0, read.stderr
        assert f"StatefulSet {release}-ottla" in read.stdout
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"] == ">=1.27.0-0"
    assert "external-dns.alpha.kubernetes.io/hostname: kafka-2.example.com" in done.stdout
