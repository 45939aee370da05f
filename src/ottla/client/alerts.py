"""Alerts about a cluster: rules, what they watch, and when an alert begins, is repeated and ends.

`Alarms` is pure: series and the time in, alerts out. `Watcher` asks a cluster for the series that the rules watch. An alert has
the form of Alertmanager's: labels, annotations, a beginning and an end. `payloads` makes the two bodies that receivers know: of
Alertmanager's API (POST /api/v2/alerts), and of what Alertmanager itself sends to webhooks (version 4).
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from ottla.client.admin.configs import ConfigResource, ConfigResourceType, describe_configs
from ottla.client.admin.log_dirs import describe_log_dirs
from ottla.client.cluster import Cluster
from ottla.client.health import ClusterState, cluster_state
from ottla.client.lag import LagMonitor, LagReader
from ottla.client_core.lag import SENSIBLE, Status
from ottla.errors import ConfigError, KafkaError

OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
STATUSES: Final = {each.name: float(each) for each in Status}

METRICS: Final[dict[str, tuple[str, str]]] = {
    "cluster_unreachable": ("", "1 while no broker answers"),
    "under_replicated_partitions": (
        "sum(kafka_server_replicamanager_underreplicatedpartitions)",
        "partitions lack replicas in sync",
    ),
    "offline_partitions": ("max(kafka_controller_kafkacontroller_offlinepartitionscount)", "partitions have no leader"),
    "under_min_isr_partitions": (
        "sum(kafka_server_replicamanager_underminisrpartitioncount)",
        "partitions have fewer replicas in sync than they need",
    ),
    "offline_log_directories": ("sum(kafka_log_logmanager_offlinelogdirectorycount)", "log directories have failed"),
    "active_controllers": ("sum(kafka_controller_kafkacontroller_activecontrollercount)", "controllers are active"),
    "fenced_brokers": ("max(kafka_controller_kafkacontroller_fencedbrokercount)", "brokers are fenced"),
    "disk_free_percent": (
        "100 * min by (instance) (ottla_log_directory_free_bytes / ottla_log_directory_size_bytes)",
        "percent of the disk of a log directory are free",
    ),
    "group_lag": ("sum by (group) (kafka_consumergroup_group_sum_lag{group=~GROUPS})", "records behind"),
    "group_lag_seconds": ("max by (group) (kafka_consumergroup_group_max_lag_seconds{group=~GROUPS})", "seconds behind"),
    "group_status": ("", "is the status of a group"),
    "topic_idle_seconds": ("", "seconds without a new record"),
}
"""What rules can watch: the same in PromQL over the pages of nodes (an empty text where they do not have it), and in words."""


class Rule(NamedTuple):
    """One rule."""

    name: str
    metric: str
    operator: str
    threshold: float
    for_s: float = 10.0
    severity: str = "warning"
    summary: str = ""
    groups: str = "*"
    """Which groups, as a glob; for metrics of groups."""
    topics: str = "*"

    @property
    def condition(self) -> str:
        value = Status(int(self.threshold)).name if self.metric == "group_status" else f"{self.threshold:g}"
        return f"{self.metric} {self.operator} {value}"

    def is_true(self, value: float) -> bool:
        return OPERATORS[self.operator](value, self.threshold)


DEFAULT_RULES: Final = (
    Rule("ClusterUnreachable", "cluster_unreachable", ">", 0, severity="critical", summary="No broker answers"),
    Rule("UnderReplicatedPartitions", "under_replicated_partitions", ">", 0, summary="Partitions lack replicas in sync"),
    Rule("OfflinePartitions", "offline_partitions", ">", 0, severity="critical", summary="Partitions have no leader"),
    Rule(
        "UnderMinIsrPartitions",
        "under_min_isr_partitions",
        ">",
        0,
        severity="critical",
        summary="Writes with acks=all are refused",
    ),
    Rule(
        "OfflineLogDirectories", "offline_log_directories", ">", 0, severity="critical", summary="Log directories have failed"
    ),
    Rule("ActiveControllers", "active_controllers", "!=", 1, severity="critical", summary="The quorum has no leader"),
    Rule("FencedBrokers", "fenced_brokers", ">", 0, summary="Brokers are down or cut off"),
    Rule("DiskSpace", "disk_free_percent", "<", 15, summary="A disk of the brokers is nearly full"),
    Rule("GroupLag", "group_lag", ">", 1000, for_s=60.0, summary="A consumer group is behind"),
    Rule("GroupLagSeconds", "group_lag_seconds", ">", 300, for_s=60.0, summary="A consumer group is minutes behind"),
    Rule(
        "GroupStatus",
        "group_status",
        "==",
        float(Status.ERR),
        for_s=60.0,
        severity="critical",
        summary="A consumer group stands still",
    ),
)


class AlertSettings(NamedTuple):
    """A file of rules."""

    rules: tuple[Rule, ...] = DEFAULT_RULES
    webhook: str | None = None
    form: str = "webhook"
    every_s: float = 15.0
    repeat_s: float = 4 * 3600.0
    labels: tuple[tuple[str, str], ...] = ()


FORMS: Final = ("webhook", "alertmanager")


def parse_settings(content: Any, where: str, duration_s: Callable[[str], float | None]) -> AlertSettings:
    """The settings in what YAML was read from a file. Raises `ConfigError`, which names the place."""
    if not isinstance(content, dict):
        raise ConfigError(f"{where}: write a mapping with rules, webhook, form, every, repeat, labels")
    unknown = content.keys() - {"rules", "webhook", "form", "every", "repeat", "labels"}
    if unknown:
        raise ConfigError(
            f"{where}: {', '.join(map(str, unknown))} is not known: there are rules, webhook, form, every, repeat, labels"
        )
    default = AlertSettings()

    def seconds(value: Any, name: str, otherwise: float) -> float:
        if value is None:
            return otherwise
        found = float(value) if isinstance(value, int | float) else duration_s(str(value))
        if found is None or found <= 0:
            raise ConfigError(f"{where}: {name}: {value!r} is no duration: write 30s or 5m")
        return found

    form = content.get("form", default.form)
    if form not in FORMS:
        raise ConfigError(f"{where}: form: {form!r} is not known: choose {' or '.join(FORMS)}")
    labels = content.get("labels") or {}
    if not isinstance(labels, dict):
        raise ConfigError(f"{where}: labels: write a mapping of names to texts")
    listed = content.get("rules")
    rules = (
        default.rules
        if listed is None
        else tuple(_rule(each, f"{where}: rule {at}", seconds) for at, each in enumerate(listed, 1))
    )
    return AlertSettings(
        rules,
        content.get("webhook"),
        form,
        seconds(content.get("every"), "every", default.every_s),
        seconds(content.get("repeat"), "repeat", default.repeat_s),
        tuple((str(name), str(value)) for name, value in labels.items()),
    )


def _rule(content: Any, where: str, seconds: Callable[[Any, str, float], float]) -> Rule:
    if not isinstance(content, dict) or "alert" not in content or "when" not in content:
        raise ConfigError(f"{where}: a rule needs alert, its name, and when, such as: when: group_lag > 1000")
    known = {"alert", "when", "for", "severity", "summary", "groups", "topics"}
    if unknown := content.keys() - known:
        raise ConfigError(f"{where}: {', '.join(map(str, unknown))} is not known: a rule has {', '.join(sorted(known))}")
    words = str(content["when"]).split()
    if len(words) != 3 or words[0] not in METRICS or words[1] not in OPERATORS:
        raise ConfigError(
            f"{where}: when: {content['when']!r} is not METRIC OPERATOR NUMBER; metrics are {', '.join(METRICS)}; "
            f"operators are {' '.join(OPERATORS)}"
        )
    try:
        threshold = STATUSES[words[2]] if words[2] in STATUSES else float(words[2])
    except ValueError:
        raise ConfigError(f"{where}: when: {words[2]!r} is no number, and no status: {', '.join(STATUSES)}") from None
    return Rule(
        str(content["alert"]),
        words[0],
        words[1],
        threshold,
        seconds(content["for"], "for", 10.0) if content.get("for") else 0.0 if "for" in content else 10.0,
        str(content.get("severity", "warning")),
        str(content.get("summary", "")),
        str(content.get("groups", "*")),
        str(content.get("topics", "*")),
    )


class Series(NamedTuple):
    """One value of a metric."""

    labels: tuple[tuple[str, str], ...]
    value: float
    text: str = ""
    """More about it, such as which partitions."""


class Alert(NamedTuple):
    """An alert to send. It has ended if `ends_s` is not None."""

    labels: tuple[tuple[str, str], ...]
    annotations: tuple[tuple[str, str], ...]
    starts_s: float
    ends_s: float | None = None

    @property
    def fingerprint(self) -> str:
        """The same for the same labels."""
        return hashlib.blake2b(json.dumps(sorted(self.labels)).encode(), digest_size=8).hexdigest()


class _Active:
    """A rule that is true for a series."""

    __slots__ = ("alert", "sent_s", "since_s")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.alert: Alert | None = None
        self.sent_s: float | None = None


class Alarms:
    """Which rules are true, since when, and what has been told of them."""

    def __init__(self, settings: AlertSettings) -> None:
        self._settings = settings
        self._active: dict[tuple[Rule, tuple[tuple[str, str], ...]], _Active] = {}
        self._ended: list[Alert] = []

    def firing(self) -> list[Alert]:
        """The alerts that have begun and not ended."""
        return [each.alert for each in self._active.values() if each.alert is not None]

    def see(self, series: Mapping[str, Sequence[Series]], now_s: float) -> list[Alert]:
        """What is to be sent after a look: new alerts, ended ones, and those that are to be repeated.

        A metric that is not in `series` could not be asked for: what is known of it stays. Call `sent` when a receiver has it.
        """
        for rule in self._settings.rules:
            if rule.metric not in series:
                continue
            true = {each.labels: each for each in series[rule.metric] if _concerns(rule, each) and rule.is_true(each.value)}
            for labels, each in true.items():
                active = self._active.setdefault((rule, labels), _Active(now_s))
                if now_s - active.since_s >= rule.for_s:
                    starts_s = active.since_s if active.alert is None else active.alert.starts_s
                    active.alert = self._alert(rule, each, starts_s)
            for key in [key for key in self._active if key[0] == rule and key[1] not in true]:
                ended = self._active.pop(key)
                if ended.alert is not None and ended.sent_s is not None:
                    self._ended.append(ended.alert._replace(ends_s=now_s))
        due = [
            each.alert
            for each in self._active.values()
            if each.alert is not None and (each.sent_s is None or now_s - each.sent_s >= self._settings.repeat_s)
        ]
        return [*self._ended, *due]

    def sent(self, alerts: Iterable[Alert], now_s: float) -> None:
        """A receiver has taken these."""
        marks = {each.fingerprint for each in alerts}
        self._ended = [each for each in self._ended if each.fingerprint not in marks]
        for active in self._active.values():
            if active.alert is not None and active.alert.fingerprint in marks:
                active.sent_s = now_s

    def _alert(self, rule: Rule, each: Series, starts_s: float) -> Alert:
        labels = {"alertname": rule.name, "severity": rule.severity, **dict(self._settings.labels), **dict(each.labels)}
        value = Status(int(each.value)).name if rule.metric == "group_status" else f"{each.value:g}"
        about = ", ".join(f"{name} {text}" for name, text in each.labels)
        description = f"{about}: {rule.metric} is {value}" if about else f"{rule.metric} is {value}"
        annotations = {"description": f"{description} ({rule.condition}){f': {each.text}' if each.text else ''}"}
        if rule.summary:
            annotations["summary"] = rule.summary
        return Alert(tuple(sorted(labels.items())), tuple(sorted(annotations.items())), starts_s)


def _concerns(rule: Rule, series: Series) -> bool:
    labels = dict(series.labels)
    return fnmatch.fnmatchcase(labels.get("group", ""), rule.groups if "group" in labels else "*") and fnmatch.fnmatchcase(
        labels.get("topic", ""), rule.topics if "topic" in labels else "*"
    )


def payloads(form: str, alerts: Sequence[Alert], receiver: str = "ottla", until_s: float | None = None) -> Any:
    """The JSON body for a receiver. `until_s`: when Alertmanager shall take a firing alert for ended, if it hears no more."""
    if form == "alertmanager":
        return [
            {
                "labels": dict(each.labels),
                "annotations": dict(each.annotations),
                "startsAt": _time(each.starts_s),
                **(
                    {"endsAt": _time(each.ends_s)} if each.ends_s is not None else {"endsAt": _time(until_s)} if until_s else {}
                ),
            }
            for each in alerts
        ]
    is_firing = any(each.ends_s is None for each in alerts)
    return {
        "version": "4",
        "groupKey": "{}:{}",
        "truncatedAlerts": 0,
        "status": "firing" if is_firing else "resolved",
        "receiver": receiver,
        "groupLabels": {},
        "commonLabels": dict(_common(each.labels for each in alerts)),
        "commonAnnotations": dict(_common(each.annotations for each in alerts)),
        "externalURL": "",
        "alerts": [
            {
                "status": "firing" if each.ends_s is None else "resolved",
                "labels": dict(each.labels),
                "annotations": dict(each.annotations),
                "startsAt": _time(each.starts_s),
                "endsAt": "0001-01-01T00:00:00Z" if each.ends_s is None else _time(each.ends_s),
                "generatorURL": "",
                "fingerprint": each.fingerprint,
            }
            for each in alerts
        ],
    }


def _common(many: Iterable[tuple[tuple[str, str], ...]]) -> list[tuple[str, str]]:
    sets = [set(each) for each in many]
    return sorted(set.intersection(*sets)) if sets else []


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# What the rules watch


class Watcher:
    """Asks a cluster for the metrics of rules."""

    def __init__(self, cluster: Cluster, rules: Iterable[Rule]) -> None:
        self._cluster = cluster
        self._wanted = {each.metric for each in rules}
        self._monitor = LagMonitor(LagReader(cluster), SENSIBLE)
        self._moved: dict[str, tuple[int, float]] = {}
        self.failures: list[str] = []
        """Why metrics of the last look are missing."""

    async def look(self) -> dict[str, list[Series]]:
        """The current series. A metric that cannot be asked for is missing, and `failures` says why."""
        self.failures = []
        found: dict[str, list[Series]] = {}
        try:
            found |= await self._of_cluster()
            found["cluster_unreachable"] = [Series((), 0.0)]
        except (KafkaError, TimeoutError) as error:
            # What needs a cluster stays as it was.
            self.failures.append(str(error) or type(error).__name__)
            return {"cluster_unreachable": [Series((), 1.0, self.failures[0])]}
        for ask in (self._of_log_dirs, self._of_groups, self._of_topics):
            try:
                found |= await ask()
            except (KafkaError, TimeoutError) as error:
                self.failures.append(str(error) or type(error).__name__)
        return {name: each for name, each in found.items() if name in self._wanted}

    async def _of_cluster(self) -> dict[str, list[Series]]:
        state = await cluster_state(self._cluster)
        partitions = [(f"{topic.name}-{each.partition}", each) for topic in state.topics.values() for each in topic.partitions]
        offline = [name for name, each in partitions if each.leader is None]
        under = [name for name, each in partitions if len(each.isr) < len(each.replicas)]
        has_leader = state.quorum is None or state.quorum.leader_id >= 0
        fenced = [str(node.id) for node in state.described.nodes.values() if node.is_fenced]
        return {
            "offline_partitions": [Series((), len(offline), _few(offline))],
            "under_replicated_partitions": [Series((), len(under), _few(under))],
            "active_controllers": [Series((), float(has_leader))],
            "fenced_brokers": [Series((), len(fenced), _few([f"broker {each}" for each in fenced]))],
            **await self._under_min_isr(state),
        }

    async def _under_min_isr(self, state: ClusterState) -> dict[str, list[Series]]:
        """Only topics that lack replicas are asked for their setting: the others have as many as they can."""
        if "under_min_isr_partitions" not in self._wanted:
            return {}
        lacking = [
            topic.name
            for topic in state.topics.values()
            if any(len(each.isr) < len(each.replicas) for each in topic.partitions)
        ]
        found = []
        if lacking:
            name = "min.insync.replicas"
            resources = [ConfigResource(ConfigResourceType.TOPIC, each) for each in lacking]
            settings = (await describe_configs(self._cluster, resources, names=[name])).values_found
            minimum = {each.name: int(entries[name].value or 1) for each, entries in settings.items() if name in entries}
            found = [
                f"{topic}-{each.partition}"
                for topic in lacking
                for each in state.topics[topic].partitions
                if len(each.isr) < min(minimum.get(topic, 1), len(each.replicas))
            ]
        return {"under_min_isr_partitions": [Series((), len(found), _few(found))]}

    async def _of_log_dirs(self) -> dict[str, list[Series]]:
        if not self._wanted & {"offline_log_directories", "disk_free_percent"}:
            return {}
        results = await describe_log_dirs(self._cluster)
        _ = results.errors  # brokers that are down: other rules tell
        offline, free = [], []
        for broker, directories in results.values_found.items():
            for each in directories.values():
                if each.error is not None:
                    offline.append(f"{each.path} of broker {broker}")
                elif each.total_bytes and each.usable_bytes is not None:
                    labels = (("broker", str(broker)), ("directory", each.path))
                    free.append(Series(labels, round(100 * each.usable_bytes / each.total_bytes, 1)))
        return {"offline_log_directories": [Series((), len(offline), _few(offline))], "disk_free_percent": free}

    async def _of_groups(self) -> dict[str, list[Series]]:
        if not self._wanted & {"group_lag", "group_lag_seconds", "group_status"}:
            return {}
        groups = [each for each in await self._monitor.look() if each.lag.error is None]
        named = [((("group", each.lag.group),), each) for each in groups]
        return {
            "group_lag": [Series(labels, each.lag.lag) for labels, each in named],
            "group_lag_seconds": [Series(labels, each.lag.lag_s) for labels, each in named if each.lag.lag_s is not None],
            "group_status": [Series(labels, float(each.status)) for labels, each in named],
        }

    async def _of_topics(self) -> dict[str, list[Series]]:
        if "topic_idle_seconds" not in self._wanted:
            return {}
        ends = await self._monitor.reader.ends()
        totals: dict[str, int] = {}
        for key, end in ends.items():
            totals[key.topic] = totals.get(key.topic, 0) + end
        now_s = self._monitor.reader.now_ms() / 1000
        moved = {}
        for topic, total in totals.items():
            before = self._moved.get(topic)
            moved[topic] = (total, now_s) if before is None or before[0] != total else before
        self._moved = moved
        return {"topic_idle_seconds": [Series((("topic", topic),), now_s - since_s) for topic, (_, since_s) in moved.items()]}


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# The same rules for others


def rules_yaml(settings: AlertSettings) -> str:
    """The settings as the file that `parse_settings` reads. JSON texts are YAML too."""
    lines = [f"webhook: {json.dumps(settings.webhook)}", f"form: {settings.form}"]
    lines += [
        f"every: {settings.every_s:g}s",
        f"repeat: {settings.repeat_s / 3600:g}h",
        f"labels: {json.dumps(dict(settings.labels))}",
    ]
    lines.append("rules:")
    for rule in settings.rules:
        lines += [f"  - alert: {json.dumps(rule.name)}", f"    when: {json.dumps(rule.condition)}", f"    for: {rule.for_s:g}s"]
        lines += [f"    severity: {json.dumps(rule.severity)}", f"    summary: {json.dumps(rule.summary)}"]
        lines += [f"    groups: {json.dumps(rule.groups)}"] if rule.groups != "*" else []
        lines += [f"    topics: {json.dumps(rule.topics)}"] if rule.topics != "*" else []
    return "\n".join(lines) + "\n"


def prometheus_rules(settings: AlertSettings) -> str:
    """The rules as a file for Prometheus, over the pages of nodes (/metrics, /metrics/groups?flavour=lag)."""
    lines = ["groups:", "  - name: ottla", "    rules:"]
    for rule in settings.rules:
        expression = promql(rule)
        if expression is None:
            lines.append(f"      # {rule.name}: {rule.condition} is known to `ottla alerts run` alone")
            continue
        lines += [
            f"      - alert: {json.dumps(rule.name)}",
            f"        expr: {json.dumps(expression)}",
            f"        for: {rule.for_s:g}s",
        ]
        labels = {"severity": rule.severity, **dict(settings.labels)}
        lines.append(f"        labels: {json.dumps(labels)}")
        description = f"{METRICS[rule.metric][1]}: {{{{ $value }}}} ({rule.condition})"
        lines.append(f"        annotations: {json.dumps({'summary': rule.summary or rule.name, 'description': description})}")
    return "\n".join(lines) + "\n"


def promql(rule: Rule) -> str | None:
    """A rule's condition in PromQL; None if the pages do not have what it watches."""
    expression = METRICS[rule.metric][0]
    if rule.metric == "topic_idle_seconds" and rule.operator in (">", ">="):
        topics = json.dumps(_regex(rule.topics))
        counter = f"kafka_server_brokertopicmetrics_messagesin_total{{topic=~{topics}}}"
        return f"sum by (topic) (increase({counter}[{rule.threshold:g}s])) == 0"
    if not expression:
        return None
    return f"{expression.replace('GROUPS', json.dumps(_regex(rule.groups)))} {rule.operator} {rule.threshold:g}"


def _regex(glob: str) -> str:
    """A glob as a regular expression for labels."""
    return ".+" if glob == "*" else fnmatch.translate(glob).removeprefix("(?s:").removesuffix(r")\Z")
