"""Writes the Grafana dashboards in deploy/grafana from the tables below.

python tools/generate_dashboards.py           write them
python tools/generate_dashboards.py --check   fail if what is checked in is out of date

A panel is a title, a unit and queries with their legends. tests/compat/broker/test_dashboards.py holds every query against the
metrics of a loaded node.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "deploy" / "grafana"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24


class Panel(NamedTuple):
    """A panel: queries with legends. A stat shows the last value of its only query."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    description: str = ""


def stat(title: str, query: str, unit: str = "none", description: str = "") -> Panel:
    return Panel(title, ((query, ""),), unit, "stat", 4, description)


TOPICS = "kafka_server_brokertopicmetrics"
REQUESTS = "kafka_network_requestmetrics"
NODE = 'instance=~"$instance"'
TOPIC = 'topic=~"$topic",topic!=""'
GROUP = 'group=~"$group"'
LAG = f"sum by (group) (kafka_consumergroup_group_sum_lag{{{GROUP}}})"

CLUSTER = (
    stat("Healthy", "min(ottla_cluster_healthy)", description="1: every partition has a leader and all its replicas in sync"),
    stat("Brokers", "max(kafka_controller_kafkacontroller_activebrokercount)"),
    stat("Fenced brokers", "max(kafka_controller_kafkacontroller_fencedbrokercount)"),
    stat("Active controllers", "sum(kafka_controller_kafkacontroller_activecontrollercount)"),
    stat("Offline partitions", "max(kafka_controller_kafkacontroller_offlinepartitionscount)"),
    stat("Under-replicated partitions", "sum(kafka_server_replicamanager_underreplicatedpartitions)"),
    Panel("Bytes in", ((f'sum by (instance) (rate({TOPICS}_bytesin_total{{topic="",{NODE}}}[5m]))', "{{instance}}"),), "Bps"),
    Panel("Bytes out", ((f'sum by (instance) (rate({TOPICS}_bytesout_total{{topic="",{NODE}}}[5m]))', "{{instance}}"),), "Bps"),
    Panel(
        "Records in", ((f'sum by (instance) (rate({TOPICS}_messagesin_total{{topic="",{NODE}}}[5m]))', "{{instance}}"),), "ops"
    ),
    Panel("Requests", ((f"sum by (request) (rate({REQUESTS}_requests_total{{{NODE}}}[5m]))", "{{request}}"),), "reqps"),
    Panel("Errors", ((f"sum by (request) (rate({REQUESTS}_errors_total{{{NODE}}}[5m]))", "{{request}}"),), "reqps"),
    Panel(
        "Produce and fetch time, 99 %",
        ((f'max by (request) ({REQUESTS}_totaltimems{{request=~"Produce|Fetch",quantile="0.99",{NODE}}})', "{{request}}"),),
        "ms",
        description="Fetches wait for records: their time is mostly that",
    ),
    Panel(
        "Idle share of the event loop",
        ((f"kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{{{NODE}}}", "{{instance}}"),),
        "percentunit",
    ),
    Panel("Longest hold of the event loop", ((f"max by (instance) (ottla_loop_hold_ms_max{{{NODE}}})", "{{instance}}"),), "ms"),
    Panel(
        "Connections",
        ((f'kafka_server_socket_server_metrics_connection_count{{listener!="",{NODE}}}', "{{instance}} {{listener}}"),),
    ),
    Panel("Processor", ((f"rate(process_cpu_seconds_total{{{NODE}}}[5m])", "{{instance}}"),), "percentunit"),
    Panel("Memory", ((f"process_resident_memory_bytes{{{NODE}}}", "{{instance}}"),), "bytes"),
    Panel(
        "Free disk",
        (
            (
                f"ottla_log_directory_free_bytes{{{NODE}}} / ottla_log_directory_size_bytes{{{NODE}}}",
                "{{instance}} {{directory}}",
            ),
        ),
        "percentunit",
    ),
    Panel(
        "ISR changes",
        (
            (f"sum(rate(kafka_server_replicamanager_isrshrinks_total{{{NODE}}}[5m]))", "shrinks"),
            (f"sum(rate(kafka_server_replicamanager_isrexpands_total{{{NODE}}}[5m]))", "expands"),
        ),
    ),
    Panel("Replica lag", ((f"kafka_server_replicafetchermanager_maxlag{{{NODE}}}", "{{instance}}"),)),
    Panel(
        "Metadata quorum",
        (
            (f"kafka_server_raftmetrics_high_watermark{{{NODE}}}", "{{instance}} high watermark"),
            (f"kafka_server_raftmetrics_current_epoch{{{NODE}}}", "{{instance}} epoch"),
        ),
    ),
)
TOPIC_PANELS = (
    stat("Topics", "max(kafka_controller_kafkacontroller_globaltopiccount)"),
    stat("Partitions", "max(kafka_controller_kafkacontroller_globalpartitioncount)"),
    stat("Under min.insync.replicas", "sum(kafka_cluster_partition_underminisr)"),
    stat("At min.insync.replicas", "sum(kafka_cluster_partition_atminisr)"),
    stat("Out of sync", "sum(kafka_cluster_partition_replicascount) - sum(kafka_cluster_partition_insyncreplicascount)"),
    stat("Bytes of all logs", 'sum(kafka_log_log_size{is_future=""})', "bytes"),
    Panel("Records in", ((f"sum by (topic) (rate({TOPICS}_messagesin_total{{{TOPIC}}}[5m]))", "{{topic}}"),), "ops", width=12),
    Panel("Bytes in", ((f"sum by (topic) (rate({TOPICS}_bytesin_total{{{TOPIC}}}[5m]))", "{{topic}}"),), "Bps", width=12),
    Panel("Bytes out", ((f"sum by (topic) (rate({TOPICS}_bytesout_total{{{TOPIC}}}[5m]))", "{{topic}}"),), "Bps", width=12),
    Panel(
        "Reads that found records",
        ((f"sum by (topic) (rate({TOPICS}_totalfetchrequests_total{{{TOPIC}}}[5m]))", "{{topic}}"),),
        "reqps",
        width=12,
    ),
    Panel("Size", ((f"sum by (topic) (kafka_log_log_size{{{TOPIC}}})", "{{topic}}"),), "bytes", width=12),
    Panel("Segments", ((f"sum by (topic) (kafka_log_log_numlogsegments{{{TOPIC}}})", "{{topic}}"),), width=12),
)
GROUP_PANELS = (
    stat("Groups", "count(kafka_consumergroup_group_sum_lag)"),
    stat("Records behind", "sum(kafka_consumergroup_group_sum_lag)"),
    stat("Most seconds behind", "max(kafka_consumergroup_group_max_lag_seconds)", "s"),
    Panel(
        "Seconds behind",
        ((f"max by (group) (kafka_consumergroup_group_max_lag_seconds{{{GROUP}}})", "{{group}}"),),
        "s",
        width=12,
        description="The age of the first record that the group has not read",
    ),
    Panel("Records behind", ((f"sum by (group) (kafka_consumergroup_group_sum_lag{{{GROUP}}})", "{{group}}"),), width=12),
    Panel(
        "Records behind, by topic",
        ((f"sum by (group, topic) (kafka_consumergroup_group_topic_sum_lag{{{GROUP}}})", "{{group}} {{topic}}"),),
        width=12,
    ),
    Panel(
        "Seconds behind, by partition",
        ((f"kafka_consumergroup_group_lag_seconds{{{GROUP}}}", "{{group}} {{topic}}-{{partition}} {{client_id}}"),),
        "s",
        width=12,
    ),
    Panel("Read", ((f"sum by (group) (rate(kafka_consumergroup_group_offset{{{GROUP}}}[5m]))", "{{group}}"),), "ops", width=12),
    Panel(
        "Time to catch up",
        (
            (
                f"{LAG} / clamp_min(-deriv({LAG}[10m:1m]), 0.001)",
                "{{group}}",
            ),
        ),
        "s",
        width=12,
        description="At the rate at which the lag fell over the last ten minutes; huge while it does not fall",
    ),
)
DASHBOARDS: dict[str, tuple[str, tuple[Panel, ...], tuple[tuple[str, str], ...]]] = {
    "ottla-cluster": ("Ottla: cluster", CLUSTER, (("instance", "label_values(process_start_time_seconds, instance)"),)),
    "ottla-topics": ("Ottla: topics", TOPIC_PANELS, (("topic", "label_values(kafka_log_log_size, topic)"),)),
    "ottla-groups": (
        "Ottla: consumer groups",
        GROUP_PANELS,
        (("group", "label_values(kafka_consumergroup_group_sum_lag, group)"),),
    ),
}
"""File → title, panels, variables with the query of their values."""


def dashboard(uid: str, title: str, panels: tuple[Panel, ...], variables: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    placed, x, y, row_height = [], 0, 0, 0
    for number, panel in enumerate(panels, 1):
        height = 4 if panel.kind == "stat" else 8
        if x + panel.width > WIDTH:
            x, y, row_height = 0, y + row_height, 0
        placed.append(_panel(number, panel, {"x": x, "y": y, "w": panel.width, "h": height}))
        x, row_height = x + panel.width, max(row_height, height)
    listed = [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}]
    listed += [
        {
            "name": name,
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }  # type: ignore[dict-item]
        for name, query in variables
    ]
    return {
        "uid": uid,
        "title": title,
        "tags": ["ottla", "kafka"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": listed},
        "panels": placed,
    }


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}} if panel.kind == "timeseries" else {},
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": query, "legendFormat": legend or "__auto"}
            for at, (query, legend) in enumerate(panel.queries)
        ],
    }


def main() -> None:
    for uid, (title, panels, variables) in DASHBOARDS.items():
        text = json.dumps(dashboard(uid, title, panels, variables), indent=1) + "\n"
        file = FOLDER / f"{uid}.json"
        if "--check" in sys.argv[1:]:
            if not file.exists() or file.read_text("utf-8") != text:
                sys.exit(f"{file.name} is out of date: run `make generate`")
            continue
        FOLDER.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
