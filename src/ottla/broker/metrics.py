"""The metrics page of a node, computed on request from counters and state that exist anyway.

The names are those that dashboards know from Kafka through the Prometheus JMX exporter; metrics that Kafka does not have begin
with `ottla_`. Each node has a page of its own, because several can run in one process. Nothing here is on a hot path.

A node that is only a controller has no metrics of partitions, logs and clients' requests. Those of replication tell which
partitions are led here, how their ISRs change, and how far this broker lags as a follower.

Some metrics differ from Kafka's. Without a label `bytesin` and `bytesout` are the bytes of produce requests and fetch replies,
framing included; by topic they are bytes of batches: what the logs of partitions led here have grown by, as seen from one
scrape to the next, and what consumers were sent. `messagesin` is computed from log end offsets, so it does not restart from 0
with the node. The idle shares are those of the event loop, which does what Kafka's request handlers and network threads do.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.group_metrics import GroupMetrics
from ottla.broker.metrics_server import Page
from ottla.broker.requests.counters import ApiCounters, Counters
from ottla.broker.runtime.cluster_metrics import write_cluster
from ottla.metrics_text import MetricsText
from ottla.wire.api_table import ApiKey
from ottla.wire.apis import APIS

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.requests.loop_health import LoopHealth
    from ottla.broker.services import NodeServices, Services
    from ottla.ids import TopicPartition
    from ottla.log.partition_log import PartitionLog

LOGS_AT_ONCE = 200
"""After this many logs other tasks run: a page may have tens of thousands of lines."""

_RUNNING = 3
"""Kafka's BrokerState of a running broker."""


QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
"""As the JMX exporter writes them."""


class _Grown(NamedTuple):
    """A log at the last scrape: its active segment, and the bytes by which the log had grown."""

    base_offset: int
    size: int
    total: int


class NodeMetrics:
    """The metrics of one node; `broker` are the services of its broker, if it has one."""

    def __init__(
        self,
        services: NodeServices,
        counters: Counters,
        health: LoopHealth,
        broker: Services | None = None,
        failed_checks: Mapping[str, bool] = MappingProxyType({}),
    ) -> None:
        self._services = services
        self._broker = broker
        self._counters = counters
        self._health = health
        self._failed_checks = failed_checks
        self._started_ms = services.world.clock.now_ms()
        self._grown: dict[TopicPartition, _Grown] = {}
        self._metadata_ends: list[tuple[float, int]] = []

    def pages(self) -> dict[str, Page]:
        """The pages by path."""
        pages: dict[str, Page] = {"/metrics": self.page}
        if self._broker is not None:
            pages["/metrics/groups"] = GroupMetrics(self._broker).page
            pages["/metrics/clients"] = self._clients
        return pages

    async def _clients(self, text: MetricsText, query: Mapping[str, str]) -> None:
        """Write what clients have pushed to this broker."""
        if self._broker is not None and self._broker.telemetry is not None:
            self._broker.telemetry.write(text, int(self._services.world.clock.monotonic_s() * 1000))

    async def page(self, text: MetricsText, query: Mapping[str, str]) -> None:
        """Write the current values of all metrics, but for those of groups."""
        broker = self._broker
        self._requests(text)
        if broker is not None:
            self._topics(text, broker)
        self._loop(text)
        self._connections(text)
        if broker is not None:
            self._waiting(text, broker)
            write_replication(text, broker)
        services = self._services
        write_cluster(text, services.metadata.image, services.controller.is_active, services.elections, self._has_controller())
        self._quorum(text)
        if broker is not None:
            text.gauge("kafka_server_kafkaserver_brokerstate", "3: the broker is running.", _RUNNING)
            await self._upkeep(text, broker)
        self._process(text)
        self._checks(text)
        if broker is not None:
            await self._partitions(text, broker)
            await self._logs(text, broker)

    def _has_controller(self) -> bool:
        """Whether this node hears of an active controller. Without one its metadata is old."""
        if self._broker is None:
            return self._services.quorum.leader_id >= 0
        return self._broker.membership.silent_ms() <= self._broker.settings.current.broker_session_timeout_ms

    def _requests(self, text: MetricsText) -> None:
        asked = {APIS[key].name: each for key, each in sorted(self._counters.apis.items())}
        prefix = "kafka_network_requestmetrics"
        for name, words, attribute in (
            ("requests_total", "Requests answered.", "requests"),
            (
                "errors_total",
                "Requests that were refused or closed their connection; those that change something also if refused in part.",
                "errors",
            ),
            ("requestbytes_total", "Bytes of requests.", "bytes_in"),
            ("responsebytes_total", "Bytes of replies.", "bytes_out"),
        ):
            text.family(f"{prefix}_{name}", "counter", words)
            for api, counted in asked.items():
                text.sample(getattr(counted, attribute), [("request", api)])
        text.family(f"{prefix}_totaltimems", "summary", "Milliseconds from a complete request to its reply, waiting included.")
        for api, counted in asked.items():
            text.sample(counted.requests, [("request", api)], "_count")
            text.sample(counted.time_s_total * 1000, [("request", api)], "_sum")
            times_s = sorted(counted.recent_s)
            for quantile in QUANTILES if times_s else ():
                at_ms = times_s[min(len(times_s) - 1, int(float(quantile) * len(times_s)))] * 1000
                text.sample(at_ms, [("request", api), ("quantile", quantile)])
        text.family(f"{prefix}_totaltimems_max", "gauge", "The longest of these times since the node started.")
        for api, counted in asked.items():
            text.sample(counted.time_s_max * 1000, [("request", api)])

    def _loop(self, text: MetricsText) -> None:
        asked = {APIS[key].name: each for key, each in sorted(self._counters.apis.items())}
        holds_ms = {api: counted.hold_s_max * 1000 for api, counted in asked.items()}
        holds = dict.fromkeys(asked, 0) | self._health.holds_of_requests
        for work, held in self._health.work.items():  # the tasks of requests are here too, under their API
            holds_ms[work] = max(holds_ms.get(work, 0.0), held.hold_s_max * 1000)
            holds[work] = holds.get(work, 0) + held.holds
        text.family("ottla_loop_hold_ms_max", "gauge", "The longest time since the start that one cause held the event loop.")
        for cause, hold_ms in holds_ms.items():
            text.sample(hold_ms, [("cause", cause)])
        if (idle := self._health.idle_share()) is not None:
            words = "The share of the time since the last scrape that the event loop had nothing to do, from 0 to 1."
            text.gauge("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", words, idle)
            text.gauge("kafka_network_socketserver_networkprocessoravgidle_percent", words, idle)
        text.family("ottla_loop_holds_total", "counter", "How often one cause held the event loop for 200 ms or longer.")
        for cause, count in holds.items():
            text.sample(count, [("cause", cause)])

    def _topics(self, text: MetricsText, broker: Services) -> None:
        nothing = ApiCounters()
        produce = self._counters.apis.get(ApiKey.PRODUCE, nothing)
        fetch = self._counters.apis.get(ApiKey.FETCH, nothing)
        prefix = "kafka_server_brokertopicmetrics"
        for name, words, value in (
            ("bytesin_total", "Bytes of produce requests.", produce.bytes_in),
            ("bytesout_total", "Bytes of fetch replies.", fetch.bytes_out),
            ("totalproducerequests_total", "Produce requests.", produce.requests),
            ("failedproducerequests_total", "Produce requests refused as a whole or in part.", produce.errors),
            ("totalfetchrequests_total", "Fetch requests.", fetch.requests),
            ("failedfetchrequests_total", "Fetch requests refused as a whole.", fetch.errors),
        ):
            text.counter(f"{prefix}_{name}", words, value)
            for topic, number in self._of_topics(broker, name).items():
                text.sample(number, [("topic", topic)])
        ends = {
            topic: sum(each.log.log_end_offset for each in partitions.values())
            for topic, partitions in broker.partitions.by_name.items()
        }
        text.family(f"{prefix}_messagesin_total", "counter", "Records appended to the partitions that are here, ever.")
        text.sample(sum(ends.values()))  # the sum without a label beside the topics, as in Kafka
        for topic, end in ends.items():
            text.sample(end, [("topic", topic)])

    def _connections(self, text: MetricsText) -> None:
        connections = self._counters.connections
        prefix = "kafka_server_socket_server_metrics"
        text.gauge(f"{prefix}_connection_count", "Open connections; by listener too.", connections.open)
        for listener, count in connections.listeners.items():
            text.sample(count.open, [("listener", listener), ("networkProcessor", "0")])
        for name, words, value in (
            ("connection_creation_total", "Connections accepted.", connections.accepted),
            ("connection_close_idle_total", "Connections closed because they were idle.", connections.idle_closed),
            ("connection_refused_total", "Connections closed at once: too many from one address.", connections.refused),
            (
                "connection_evicted_total",
                "Connections closed because they sent too slowly while others waited for memory.",
                connections.evicted,
            ),
            ("connection_fault_total", "Connections closed because the peer broke the protocol.", connections.faults),
            ("failed_authentication_total", "Logins with SASL that failed.", connections.logins_failed),
            (
                "expired_session_total",
                "Connections closed because their session was over and the client had not logged in again.",
                connections.sessions_expired,
            ),
        ):
            text.counter(f"{prefix}_{name}", words, value)

    def _waiting(self, text: MetricsText, broker: Services) -> None:
        partitions = broker.partitions
        fetches = {waiting for partition in partitions for waiting in partition.watches}
        produces = sum(len(partition.ack_waits) for partition in partitions)
        text.family("kafka_server_delayedoperationpurgatory_purgatorysize", "gauge", "Parked requests.")
        text.sample(len(fetches), [("delayedOperation", "Fetch")])
        text.sample(produces, [("delayedOperation", "Produce")])
        text.gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions.", len(broker.fetch_sessions))

    def _quorum(self, text: MetricsText) -> None:
        quorum = self._services.quorum
        prefix, known = "kafka_server_raft_metrics", quorum.replica.high_watermark
        for name, words, value in (
            ("current_leader", "The leader of the metadata quorum; -1 if it is not known.", quorum.leader_id),
            ("current_epoch", "The epoch of the metadata quorum.", quorum.epoch),
            ("high_watermark", "The metadata log is committed below this offset; -1: unknown.", -1 if known is None else known),
            ("log_end_offset", "The end of this node's metadata log.", quorum.end_offset),
            ("number_of_voters", "Voters of the metadata quorum.", len(quorum.voters)),
        ):
            text.gauge(f"{prefix}_{name}", words, value)
            text.gauge(f"kafka_server_raftmetrics_{name}", words, value)
        role = quorum.replica.role
        voted = role.election.voted
        state = type(role).__name__.lower()
        now_s = asyncio.get_running_loop().time()
        self._metadata_ends = [*self._metadata_ends[-60:], (now_s, quorum.end_offset)]
        (first_s, first), (last_s, last) = self._metadata_ends[0], self._metadata_ends[-1]
        rate = (last - first) / (last_s - first_s) if last_s > first_s else 0.0
        for each in (prefix, "kafka_server_raftmetrics"):
            text.gauge(f"{each}_current_vote", "Whom this node voted for in this epoch; -1: nobody.", voted.id if voted else -1)
            text.gauge(f"{each}_append_records_rate", "Records a second by which the metadata log has grown lately.", rate)
            text.family(f"{each}_current_state", "gauge", "1 for the state of this node in the quorum.")
            text.sample(1, [("current_state", state)])

    async def _upkeep(self, text: MetricsText, broker: Services) -> None:
        directories = broker.directories
        text.gauge(
            "kafka_log_logmanager_offlinelogdirectorycount",
            "Log directories that have failed.",
            sum(not directory.is_online for directory in directories.directories),
        )
        online = [each for each in directories.directories if each.is_online]
        spaces = [(each.path, await self._services.world.disk.space(each.path)) for each in online]
        text.family("ottla_log_directory_size_bytes", "gauge", "The size of a log directory's disk.")
        for path, space in spaces:
            text.sample(space.total_bytes, [("directory", path)])
        text.family("ottla_log_directory_free_bytes", "gauge", "What is free of it.")
        for path, space in spaces:
            text.sample(space.usable_bytes, [("directory", path)])
        counted = directories.counters
        text.counter("ottla_log_retention_segments_total", "Segments that retention has deleted.", counted.segments_expired)
        text.counter("ottla_log_retention_bytes_total", "Bytes that retention has deleted.", counted.bytes_expired)
        compactor = directories.compactor
        if compactor is not None:
            text.counter("ottla_log_compaction_passes_total", "Completed compactions.", compactor.passes)
            text.counter("ottla_log_compaction_read_bytes_total", "Bytes that compaction has read.", compactor.bytes_read)
            text.counter(
                "ottla_log_compaction_written_bytes_total", "Bytes that compaction has written.", compactor.bytes_written
            )
            text.gauge(
                "kafka_log_logcleanermanager_uncleanable_partitions_count",
                "Partitions that are not compacted because they are damaged.",
                len(compactor.uncleanable),
            )
        text.gauge("ottla_log_moves", "Partitions that are being moved to another log directory.", len(broker.moves))

    def _process(self, text: MetricsText) -> None:
        text.gauge("process_start_time_seconds", "When the node started, in seconds since 1970.", self._started_ms / 1000)
        if self._services.world.usage is not None:
            usage = self._services.world.usage()
            text.counter("process_cpu_seconds_total", "Processor time of the process.", usage.cpu_s)
            text.gauge("process_resident_memory_bytes", "Memory that the process holds.", usage.resident_bytes)
            if usage.open_files >= 0:
                text.gauge("process_open_fds", "Files and sockets that the process has open.", usage.open_files)
            if usage.disk_read_bytes >= 0:
                prefix = "kafka_server_kafkaserver_linux_disk"
                text.gauge(f"{prefix}_read_bytes", "Bytes that the process had read from disks.", usage.disk_read_bytes)
                text.gauge(f"{prefix}_write_bytes", "Bytes that it had written to them.", usage.disk_written_bytes)
        collected = gc.get_stats()
        text.family("python_gc_collections_total", "counter", "Garbage collections of the process.")
        for number, each in enumerate(collected):
            text.sample(each["collections"], [("generation", number)])
        text.family("python_gc_objects_collected_total", "counter", "Objects that they have freed.")
        for number, each in enumerate(collected):
            text.sample(each["collected"], [("generation", number)])

    def _checks(self, text: MetricsText) -> None:
        text.family("ottla_check_failed", "gauge", "1: the check of the machine at the start found what will fail or hurt.")
        for check, is_failed in self._failed_checks.items():
            text.sample(is_failed, [("check", check)])

    def _of_topics(self, broker: Services, name: str) -> dict[str, int]:
        """A counter of `BrokerTopicMetrics` by topic, where it is known by topic."""
        found: dict[str, int] = {}
        for each in broker.partitions:
            if name == "bytesin_total":
                number = self._grown_bytes(each)
            elif name == "bytesout_total":
                number = each.fetched_bytes
            elif name == "totalfetchrequests_total":
                number = each.fetches
            else:
                return {}
            found[each.topic] = found.get(each.topic, 0) + number
        return found

    def _grown_bytes(self, partition: Partition) -> int:
        """Bytes that a log has grown by while it was led here: what came between two scrapes is still in its last segments."""
        name, active = partition.name, partition.log.segments.active
        seen = self._grown.get(name)
        if seen is None:
            total = partition.log.size_bytes if partition.is_leading else 0
        elif not partition.is_leading:
            total = seen.total
        else:
            newer = sum(
                each.size for each in partition.log.segments.all_from(seen.base_offset) if each.base_offset >= seen.base_offset
            )
            total = seen.total + max(0, newer - seen.size)
        self._grown[name] = _Grown(active.base_offset, active.size, total)
        return total

    async def _partitions(self, text: MetricsText, broker: Services) -> None:
        """What each partition led here lacks."""
        led = sorted((each for each in broker.partitions if each.is_leading), key=lambda each: each.name)
        rows = [
            (
                [("topic", each.topic), ("partition", each.index)],
                (len(each.isr) < each.min_isr, len(each.isr) == each.min_isr, len(each.replicas), len(each.isr)),
            )
            for each in led
        ]
        for index, (family, words) in enumerate(
            (
                ("underminisr", "Whether fewer replicas are in sync than it needs."),
                ("atminisr", "Whether no more are in sync than it needs."),
                ("replicascount", "Replicas."),
                ("insyncreplicascount", "Replicas in sync."),
            )
        ):
            text.family(f"kafka_cluster_partition_{family}", "gauge", words)
            for number, (labels, numbers) in enumerate(rows):
                text.sample(numbers[index], labels)
                if number % LOGS_AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _logs(self, text: MetricsText, broker: Services) -> None:
        """One sample per log and family. The format wants the samples of a family together, so rows are collected first."""
        rows: list[tuple[list[tuple[str, object]], tuple[int, ...]]] = []
        for directory in broker.directories.directories:
            for logs, more in ((directory.logs, []), (directory.future_logs, [("is_future", "true")])):
                for name, log in list(logs.items()):
                    rows.append(([("topic", name.topic), ("partition", name.partition), *more], _numbers_of(log)))
                    if len(rows) % LOGS_AT_ONCE == 0:
                        await asyncio.sleep(0)
        for index, (family, words) in enumerate(
            (
                ("size", "Bytes of records."),
                ("numlogsegments", "Segments."),
                ("logstartoffset", "The log start offset."),
                ("logendoffset", "The log end offset: the offset of the next record."),
            )
        ):
            text.family(f"kafka_log_log_{family}", "gauge", words)
            for number, (labels, numbers) in enumerate(rows):
                text.sample(numbers[index], labels)
                if number % LOGS_AT_ONCE == 0:
                    await asyncio.sleep(0)


def _numbers_of(log: PartitionLog) -> tuple[int, ...]:
    return log.size_bytes, len(log.segments), log.log_start_offset, log.log_end_offset


_PREFIX = "kafka_server_replicamanager"


def write_replication(text: MetricsText, broker: Services) -> None:
    """Add the families of replication to the page."""
    _write_partitions(text, broker)
    _write_isr_changes(text, broker)
    _write_lags(text, broker)
    _write_throttled(text, broker)


def _write_partitions(text: MetricsText, broker: Services) -> None:
    partitions = list(broker.partitions)
    led = [each for each in partitions if each.is_leading]
    states = (broker.metadata.partition(each.topic, each.index) for each in led)
    for name, words, value in (
        ("partitioncount", "Partitions on this node.", len(partitions)),
        ("leadercount", "Partitions that this node leads.", len(led)),
        ("offlinereplicacount", "Partitions whose log directory failed.", len(broker.partitions.offline)),
        (
            "underreplicatedpartitions",
            "Partitions led here with replicas out of sync.",
            sum(len(each.isr) < len(each.replicas) for each in led),
        ),
        (
            "underminisrpartitioncount",
            "Partitions led here with fewer replicas in sync than they need.",
            sum(len(each.isr) < each.min_isr for each in led),
        ),
        (
            "atminisrpartitioncount",
            "Partitions led here with no more replicas in sync than they need.",
            sum(len(each.isr) == each.min_isr for each in led),
        ),
        (
            "reassigningpartitions",
            "Partitions led here that are being reassigned.",
            sum(state is not None and bool(state.adding_replicas or state.removing_replicas) for state in states),
        ),
    ):
        text.gauge(f"{_PREFIX}_{name}", words, value)


def _write_isr_changes(text: MetricsText, broker: Services) -> None:
    counted = broker.replication.isr_counters
    for name, words, value in (
        ("isrshrinks_total", "Replicas removed from the ISR of a partition led here, counted by change.", counted.shrinks),
        ("isrexpands_total", "Replicas added to the ISR of a partition led here, counted by change.", counted.expands),
        ("failedisrupdates_total", "Changes of an ISR that the controller has not made.", counted.failures),
    ):
        text.counter(f"{_PREFIX}_{name}", words, value)


def _write_lags(text: MetricsText, broker: Services) -> None:
    lags = broker.replication.lags()
    text.gauge(
        "kafka_server_replicafetchermanager_maxlag",
        "The most records of one partition that this node, as a follower, lacks of its leader's high watermark.",
        max(lags.values(), default=0),
        [("clientId", "Replica")],
    )
    text.family("ottla_replica_fetcher_lag_max", "gauge", "The same for the partitions of one leader.")
    for leader, lag in sorted(lags.items()):
        text.sample(lag, [("leader", leader)])


def _write_throttled(text: MetricsText, broker: Services) -> None:
    now_s, replication = broker.scheduler.now_s(), broker.replication
    text.gauge(
        "kafka_server_leaderreplication_byte_rate",
        "Bytes per second sent to throttled replicas.",
        replication.leader_quota.rate(now_s),
    )
    text.gauge(
        "kafka_server_followerreplication_byte_rate",
        "Bytes per second fetched for throttled replicas.",
        replication.follower_quota.rate(now_s),
    )
