"""The page /metrics/groups of a broker: the lag of the groups that it coordinates, in the names that dashboards know.

    /metrics/groups?flavour=kafka_exporter    as danielqsj's kafka_exporter; the default
    /metrics/groups?flavour=lag               as the Kafka Lag Exporter: with seconds
    /metrics/groups?flavour=kminion           as kminion

It is a page of its own because it can be large: groups times partitions. Each group is on the page of its coordinator alone, so
sums over all nodes are right. What a flavour tells of partitions is on the page of their leader alone.

Ends and times come from the logs of this node, as leader or as follower; of partitions without a replica here, their leaders
are asked, over a connection for one scrape. `ottla_group_partitions_unknown` counts those whose leader did not answer: their
lag is left out. Seconds are the age of the first unread record, by the header of its batch, which the offset index finds; found
times are kept while the committed offset stands still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.node_links import NodeLinks
from ottla.client_core.lag import first_time_ms
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.errors import ArgumentError, CorruptRecords, DecodeError, KafkaError
from ottla.ids import TopicPartition
from ottla.link import LinkError, LinkOptions
from ottla.log.read import Isolation
from ottla.metadata.image.topics import NO_LEADER
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.layout import HEADER_SIZE
from ottla.wire.consumer_protocol import read_assignment
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.services import Services
    from ottla.coordinator.groups.group import Group
    from ottla.link import Link
    from ottla.metadata.image.topics import TopicsImage
    from ottla.metrics_text import MetricsText

AT_ONCE = 100
"""After so many partitions other tasks run."""
STEPS_MAX = 8
"""Batches that one lookup steps over, such as markers."""
BATCH_BYTES_MAX = 64 * 1024
"""Batches up to this size are read whole, to find a record within: others count from their first record."""


LEADER_S = 3.0
"""How long a leader elsewhere may take: a scrape has ten seconds."""
FETCHES_MAX = 200
"""Batches that one scrape asks a leader elsewhere for."""

_Place = tuple[TopicPartition, int]
"""A partition, and where a group goes on reading."""


class Row(NamedTuple):
    """A group in one partition, as far as this node knows it."""

    group: str
    topic: str
    partition: int
    offset: int
    end: int | None
    lag: int | None
    lag_s: float | None


class Listed(NamedTuple):
    """A group of this coordinator."""

    group: Group
    members: int
    rows: list[Row]


class GroupMetrics:
    """Writes the page, and keeps the times that it has found."""

    def __init__(self, broker: Services) -> None:
        self._broker = broker
        self._times: dict[_Place, int] = {}

    async def page(self, text: MetricsText, query: Mapping[str, str]) -> None:
        """Write the groups in the flavour that the query asks for."""
        flavour = query.get("flavour", "kafka_exporter")
        writers = {"kafka_exporter": self._kafka_exporter, "lag": self._lag_exporter, "kminion": self._kminion}
        if flavour not in writers:
            raise ArgumentError(f"flavour={flavour} is not known: choose one of {', '.join(writers)}")
        groups = await self.groups(with_times=flavour == "lag")
        unknown = sum(row.end is None for each in groups for row in each.rows)
        words = "Committed partitions without a replica here whose leader did not answer: their lag is left out."
        text.gauge("ottla_group_partitions_unknown", words, unknown)
        await writers[flavour](text, groups)

    async def groups(self, with_times: bool) -> list[Listed]:
        """The groups that this node coordinates, in the order of their ids."""
        found: list[Listed] = []
        used: set[_Place] = set()
        now_ms, count = self._broker.world.clock.now_ms(), 0
        for hosted in list(self._broker.coordinators.groups):
            shard = hosted.shard
            for group_id in list(shard.table.by_id):
                group = shard.table.by_id.get(group_id)
                if group is None:
                    continue
                rows = []
                offsets = shard.offsets.committed.by_group.get(group_id, {})
                for topic, partitions in sorted(offsets.items()):
                    for index, stored in sorted(partitions.items()):
                        row, key = self._row(group_id, TopicPartition(topic, index), stored[1], now_ms, with_times)
                        rows.append(row)
                        if key is not None:
                            used.add(key)
                        count += 1
                        if count % AT_ONCE == 0:
                            await asyncio.sleep(0)
                found.append(Listed(group, _members(group), rows))
        found = await self._with_elsewhere(found, used, with_times, now_ms)
        if with_times:
            self._times = {key: each for key, each in self._times.items() if key in used}
        return sorted(found, key=lambda each: each.group.group_id)

    def _row(
        self, group_id: str, name: TopicPartition, offset: int, now_ms: int, with_times: bool
    ) -> tuple[Row, _Place | None]:
        partition = self._broker.partitions.by_name.get(name.topic, {}).get(name.partition)
        if partition is None:
            return Row(group_id, name.topic, name.partition, offset, None, None, None), None
        end = partition.log.high_watermark
        lag = max(0, end - offset)
        key = (name, max(offset, partition.log.log_start_offset)) if lag and with_times else None
        lag_s = 0.0 if not lag else None
        if key is not None:
            time_ms = self._times.get(key)
            if time_ms is None:
                time_ms = first_unread_ms(partition, key[1])
                if time_ms is not None and time_ms >= 0:
                    self._times[key] = time_ms
            lag_s = None if time_ms is None or time_ms < 0 else max(0.0, (now_ms - time_ms) / 1000)
            lag_s = 0.0 if time_ms == NOTHING else lag_s
        return Row(group_id, name.topic, name.partition, offset, end, lag, lag_s), key

    async def _with_elsewhere(self, groups: list[Listed], used: set[_Place], with_times: bool, now_ms: int) -> list[Listed]:
        """The groups with what leaders elsewhere say of partitions that have no replica here."""
        wanted: dict[TopicPartition, set[int]] = {}
        for each in groups:
            for row in each.rows:
                if row.end is None:
                    wanted.setdefault(TopicPartition(row.topic, row.partition), set()).add(row.offset)
        if not wanted:
            return groups
        told = await ask_leaders(self._broker, wanted, self._times, with_times)

        def filled(row: Row) -> Row:
            name = TopicPartition(row.topic, row.partition)
            if row.end is not None or name not in told:
                return row
            start, end = told[name]
            lag = max(0, end - row.offset)
            lag_s = None if lag else 0.0
            if lag and with_times:
                key = (name, max(row.offset, start))
                used.add(key)
                if (time_ms := self._times.get(key)) is not None:
                    lag_s = max(0.0, (now_ms - time_ms) / 1000)
            return row._replace(end=end, lag=lag, lag_s=lag_s)

        return [each._replace(rows=[filled(row) for row in each.rows]) for each in groups]

    # Flavours. Samples are written in portions: a page of 10,000 groups has 100,000 and more.

    async def _kafka_exporter(self, text: MetricsText, groups: list[Listed]) -> None:
        brokers = self._broker.metadata.image.cluster.brokers
        text.gauge("kafka_brokers", "Brokers of the cluster.", len(brokers))
        text.family("kafka_broker_info", "gauge", "1 for every broker, with its address.")
        for broker_id, broker in sorted(brokers.items()):
            first = next(iter(broker.endpoints.values()), None)
            text.sample(1, [("id", broker_id), ("address", f"{first.host}:{first.port}" if first is not None else "")])
        await self._topics(text)
        rows = [row for each in groups for row in each.rows]
        prefix = "kafka_consumergroup"
        members = ((each.members, [("consumergroup", each.group.group_id)]) for each in groups)
        await write(text, f"{prefix}_members", "Members of a group.", members)
        for name, words, attribute in (
            ("current_offset", "The committed offset of a group in a partition.", "offset"),
            ("lag", "Records that a group is behind in a partition.", "lag"),
        ):
            known = ((value, _of(row)) for row in rows if (value := getattr(row, attribute)) is not None)
            await write(text, f"{prefix}_{name}", words, known)
        for name, words, attribute in (
            ("current_offset_sum", "The sum of the committed offsets of a group in a topic.", "offset"),
            ("lag_sum", "Records that a group is behind in a topic.", "lag"),
        ):
            sums = await _sums(rows, attribute)
            labelled = ((number, [("consumergroup", group), ("topic", topic)]) for (group, topic), number in sums.items())
            await write(text, f"{prefix}_{name}", words, labelled)

    async def _topics(self, text: MetricsText) -> None:
        led = [each for each in self._broker.partitions if each.is_leading]
        counts: dict[str, int] = {}
        for each in led:
            counts[each.topic] = counts.get(each.topic, 0) + 1
        numbers = ((number, [("topic", topic)]) for topic, number in sorted(counts.items()))
        await write(text, "kafka_topic_partitions", "Partitions of a topic that are led here.", numbers)
        for name, words, value_of in _OF_PARTITIONS:
            values = ((value_of(each), [("topic", each.topic), ("partition", each.index)]) for each in led)
            await write(text, f"kafka_topic_partition_{name}", words, values)

    async def _lag_exporter(self, text: MetricsText, groups: list[Listed]) -> None:
        cluster = self._broker.cluster_id
        rows = [row for each in groups for row in each.rows]
        prefix = "kafka_consumergroup"
        topics = self._broker.metadata.image.topics
        owners = {}
        for number, each in enumerate(groups):
            owners[each.group.group_id] = owners_of(each.group, topics)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        nobody = ("", "", "")

        def labels(row: Row) -> list[tuple[str, object]]:
            owner = owners[row.group].get((row.topic, row.partition), nobody)
            return [
                ("cluster_name", cluster),
                ("group", row.group),
                ("topic", row.topic),
                ("partition", row.partition),
                ("member_host", owner[0]),
                ("consumer_id", owner[1]),
                ("client_id", owner[2]),
            ]

        for name, words, attribute in (
            ("group_offset", "The committed offset of a group in a partition.", "offset"),
            ("group_lag", "Records that it is behind.", "lag"),
            ("group_lag_seconds", "Seconds that it is behind: the age of the first record that it has not read.", "lag_s"),
        ):
            known = ((value, labels(row)) for row in rows if (value := getattr(row, attribute)) is not None)
            await write(text, f"{prefix}_{name}", words, known)
        for name, words, number_of in _OF_GROUPS:
            values = ((number_of(each.rows), [("cluster_name", cluster), ("group", each.group.group_id)]) for each in groups)
            await write(text, f"{prefix}_{name}", words, values)
        sums = await _sums(rows, "lag")
        by_topic = (
            (number, [("cluster_name", cluster), ("group", group), ("topic", topic)]) for (group, topic), number in sums.items()
        )
        await write(text, f"{prefix}_group_topic_sum_lag", "Records that a group is behind in a topic.", by_topic)
        led = [each for each in self._broker.partitions if each.is_leading]
        for name, words, of_end in (
            ("latest", "The end of a partition.", True),
            ("earliest", "The first offset of a partition.", False),
        ):
            offsets = (
                (
                    each.log.high_watermark if of_end else each.log.log_start_offset,
                    [("cluster_name", cluster), ("topic", each.topic), ("partition", each.index)],
                )
                for each in led
            )
            await write(text, f"kafka_partition_{name}_offset", words, offsets)

    async def _kminion(self, text: MetricsText, groups: list[Listed]) -> None:
        prefix = "kminion_kafka_consumer_group"
        rows = [row for each in groups for row in each.rows]
        node_id = self._broker.node_id

        def facts(group: Group) -> list[tuple[str, object]]:
            kind = group.protocol_type if isinstance(group, ClassicGroup) else "consumer"
            return [("group_id", group.group_id), ("protocol_type", kind), ("state", group.state), ("coordinator_id", node_id)]

        await write(text, f"{prefix}_info", "1 for every group, with its state.", ((1, facts(each.group)) for each in groups))
        members = ((each.members, [("group_id", each.group.group_id)]) for each in groups)
        await write(text, f"{prefix}_members", "Members of a group.", members)
        for name, words, attribute in (
            ("topic_lag", "Records that a group is behind in a topic.", "lag"),
            ("topic_offset_sum", "The sum of its committed offsets in a topic.", "offset"),
        ):
            sums = await _sums(rows, attribute)
            by_topic = ((number, [("group_id", group), ("topic_name", topic)]) for (group, topic), number in sums.items())
            await write(text, f"{prefix}_{name}", words, by_topic)
        lags = (
            (row.lag, [("group_id", row.group), ("topic_name", row.topic), ("partition_id", row.partition)])
            for row in rows
            if row.lag is not None
        )
        await write(text, f"{prefix}_topic_partition_lag", "Records that it is behind in a partition.", lags)
        topics = sorted(self._broker.metadata.image.topics.by_name.items())
        infos = (
            (
                1,
                [
                    ("topic_name", name),
                    ("partition_count", len(each.partitions)),
                    ("replication_factor", len(each.partitions[0].replicas)),
                ],
            )
            for name, each in topics
            if 0 in each.partitions and each.partitions[0].leader in (node_id, NO_LEADER)
        )
        await write(text, "kminion_kafka_topic_info", "1 for every topic, with its partitions and replicas.", infos)
        sizes = sorted(
            (name, sum(each.log.size_bytes for each in partitions.values()))
            for name, partitions in self._broker.partitions.by_name.items()
        )
        name = "kminion_kafka_topic_log_dir_size_total_bytes"
        await write(
            text, name, "Bytes of a topic's logs on this node.", ((size, [("topic_name", topic)]) for topic, size in sizes)
        )


Samples = Iterable[tuple[float, Iterable[tuple[str, object]]]]


async def write(text: MetricsText, name: str, words: str, samples: Samples) -> None:
    """Write a family of gauges. Other tasks run in between: what `samples` reads must not change under it."""
    text.family(name, "gauge", words)
    for number, (value, labels) in enumerate(samples, 1):
        text.sample(value, labels)
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)


_OF_PARTITIONS: tuple[tuple[str, str, Callable[[Partition], float]], ...] = (
    ("current_offset", "The end of a partition.", lambda each: each.log.high_watermark),
    ("oldest_offset", "Its first offset.", lambda each: each.log.log_start_offset),
    ("leader", "The broker that leads it.", lambda each: each.node_id),
    ("replicas", "Its replicas.", lambda each: len(each.replicas)),
    ("in_sync_replica", "Those in sync.", lambda each: len(each.isr)),
    ("leader_is_preferred", "Whether its first replica leads it.", lambda each: each.replicas[:1] == (each.node_id,)),
    ("under_replicated_partition", "Whether replicas are out of sync.", lambda each: len(each.isr) < len(each.replicas)),
)
_OF_GROUPS: tuple[tuple[str, str, Callable[[list[Row]], float]], ...] = (
    (
        "group_max_lag",
        "The largest lag of a group's partitions.",
        lambda rows: max((each.lag or 0 for each in rows), default=0),
    ),
    (
        "group_max_lag_seconds",
        "The largest lag of its partitions in seconds.",
        lambda rows: max((each.lag_s or 0.0 for each in rows), default=0.0),
    ),
    ("group_sum_lag", "The sum of the lags of its partitions.", lambda rows: sum(each.lag or 0 for each in rows)),
)


LATEST, EARLIEST = -1, -2
"""Places in ListOffsets."""
NOTHING = -2
"""In place of a timestamp: nothing that a consumer would get lies there. A timestamp of -1 means that the record has none."""


def first_unread_ms(partition: Partition, offset: int) -> int | None:
    """The timestamp of the first record from `offset` on; `NOTHING` if there is none, None if it cannot be told."""
    at = offset
    try:
        for _ in range(STEPS_MAX):
            info = partition.read(at, BATCH_BYTES_MAX, Isolation.HIGH_WATERMARK)
            if info.records is None:
                return NOTHING
            header = BatchView(info.records.read(0, HEADER_SIZE))
            small = (
                header.base_offset < at
                and not header.is_compressed
                and header.size <= min(BATCH_BYTES_MAX, info.records.length)
            )
            if small:
                time_ms = first_time_ms(BatchView(info.records.read(0, header.size)), at)
            elif header.base_offset < at and not header.is_append_time:
                time_ms = None if header.is_control or header.last_offset < at else header.base_timestamp
            else:
                time_ms = _first_of(header, at)
            if time_ms is not None:
                return time_ms
            at = max(at, header.next_offset)
    except (KafkaError, CorruptRecords, OSError):
        pass  # the directory is offline, or the log was shortened just now
    return None


def _first_of(header: BatchView, offset: int) -> int | None:
    """The first timestamp of a batch of which only the header was read."""
    if header.is_control or header.last_offset < offset or not header.count:
        return None
    return header.max_timestamp if header.is_append_time or header.has_delete_horizon else header.base_timestamp


def _members(group: Group) -> int:
    return len(group.members) if isinstance(group, ClassicGroup | ConsumerGroup) else 0


def _of(row: Row) -> list[tuple[str, object]]:
    return [("consumergroup", row.group), ("topic", row.topic), ("partition", row.partition)]


async def _sums(rows: list[Row], attribute: str) -> dict[tuple[str, str], int]:
    """The sum of a number by group and topic."""
    found: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows, 1):
        value = getattr(row, attribute)
        if value is not None:
            found[row.group, row.topic] = found.get((row.group, row.topic), 0) + value
        if number % (10 * AT_ONCE) == 0:
            await asyncio.sleep(0)
    return found


def owners_of(group: Group, topics: TopicsImage) -> dict[tuple[str, int], tuple[str, str, str]]:
    """Host, member id and client id of the member that reads a partition, by topic and partition."""
    found: dict[tuple[str, int], tuple[str, str, str]] = {}
    if isinstance(group, ClassicGroup):
        if group.protocol_type != "consumer":
            return found
        for member in group.members.values():
            owner = member.client_host, member.member_id, member.client_id
            try:
                assigned = read_assignment(member.assignment).assigned_partitions if member.assignment else []
            except DecodeError:
                continue  # of a client that has its own format
            found |= {(topic.topic, index): owner for topic in assigned for index in topic.partitions}
    elif isinstance(group, ConsumerGroup):
        for each in group.members.values():
            for topic_id, partitions in each.held().items():
                topic_image = topics.by_id.get(topic_id)
                if topic_image is not None:
                    owner = each.client_host, each.member_id, each.client_id
                    found |= {(topic_image.name, index): owner for index in partitions}
    return found


async def ask_leaders(
    broker: Services, wanted: Mapping[TopicPartition, set[int]], times: dict[_Place, int], with_times: bool
) -> dict[TopicPartition, tuple[int, int]]:
    """The first and the next offset of partitions led elsewhere; the times of committed offsets in them go to `times`."""
    leaders: dict[int, list[TopicPartition]] = {}
    for name in wanted:
        state = broker.metadata.partition(name.topic, name.partition)
        if state is not None and state.leader != NO_LEADER:
            leaders.setdefault(state.leader, []).append(name)
    found: dict[TopicPartition, tuple[int, int]] = {}

    async def ask(leader: int, names: list[TopicPartition]) -> None:
        try:
            async with asyncio.timeout(LEADER_S):
                link = await _connect(broker, leader)
                if link is None:
                    return
                try:
                    starts, ends = [await _list_offsets(link, names, place) for place in (EARLIEST, LATEST)]
                    found.update({name: (starts[name], ends[name]) for name in names if name in starts and name in ends})
                    if with_times:
                        places = {
                            (name, max(offset, found[name][0])) for name in names if name in found for offset in wanted[name]
                        }
                        unread = [each for each in sorted(places - times.keys()) if each[1] < found[each[0]][1]]
                        for place in unread[:FETCHES_MAX]:
                            await _find_time(broker, link, place, times)
                finally:
                    link.close()
        except (LinkError, TimeoutError, CorruptRecords):
            pass  # it is down, or refuses this node: what it did not tell is counted as unknown

    await asyncio.gather(*(ask(leader, names) for leader, names in leaders.items()))
    return found


async def _connect(broker: Services, leader: int) -> Link | None:
    registered = broker.metadata.image.cluster.brokers.get(leader)
    name = broker.settings.current.inter_broker_listener_name
    endpoint = None if registered is None else registered.endpoints.get(name)
    if endpoint is None:
        return None
    options = LinkOptions(client_id=f"broker-{broker.node_id}-group-metrics")
    return await NodeLinks.to_brokers(broker.world, broker.settings).connect(endpoint.host, endpoint.port, options)


async def _list_offsets(link: Link, names: list[TopicPartition], place: int) -> dict[TopicPartition, int]:
    topics: dict[str, ListOffsetsTopic] = {}
    for name in names:
        asked = ListOffsetsPartition(partition_index=name.partition, timestamp=place)
        topics.setdefault(name.topic, ListOffsetsTopic(name=name.topic)).partitions.append(asked)
    response: ListOffsetsResponse = await link.request(ListOffsetsRequest(replica_id=-1, topics=list(topics.values())))
    return {
        TopicPartition(topic.name, each.partition_index): each.offset
        for topic in response.topics
        for each in topic.partitions
        if not each.error_code
    }


async def _find_time(broker: Services, link: Link, place: _Place, times: dict[_Place, int]) -> None:
    name, at = place
    topic = broker.metadata.topic(name.topic)
    if topic is None:
        return
    for _ in range(STEPS_MAX):
        partition = FetchPartition(partition=name.partition, fetch_offset=at, partition_max_bytes=1)
        asked = FetchTopic(topic=name.topic, topic_id=topic.id, partitions=[partition])
        response: FetchResponse = await link.request(FetchRequest(max_bytes=1, topics=[asked]))
        data = [each.records for one in response.responses for each in one.partitions if not each.error_code]
        if not data or not isinstance(data[0], bytes | bytearray | memoryview) or not len(data[0]):
            return
        for view in iterate_batches(bytes(data[0]), allow_cut_end=True):
            time_ms = first_time_ms(view, at)
            if time_ms is not None:
                if time_ms >= 0:
                    times[place] = time_ms
                return
            at = max(at, view.next_offset)
