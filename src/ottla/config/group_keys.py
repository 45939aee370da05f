"""The settings of a group: Kafka 4.3's, and the broker settings that stand in for those a group does not have."""

from __future__ import annotations

from ottla.config.row_table import RowTable

GROUP_KEYS = RowTable(
    "group",
    """\
consumer.assignment.interval.ms | INT | 1000 | [0,...] | MEDIUM
consumer.heartbeat.interval.ms | INT | 5000 | [1,...] | MEDIUM
consumer.session.timeout.ms | INT | 45000 | [1,...] | MEDIUM
share.assignment.interval.ms | INT | 1000 | [0,...] | MEDIUM
share.auto.offset.reset | STRING | latest | offset reset | MEDIUM
share.delivery.count.limit | INT | 5 | [2,...] | MEDIUM
share.heartbeat.interval.ms | INT | 5000 | [1,...] | MEDIUM
share.isolation.level | STRING | read_uncommitted | [read_committed, read_uncommitted] | MEDIUM
share.partition.max.record.locks | INT | 2000 | [100,...] | MEDIUM
share.record.lock.duration.ms | INT | 30000 | [1000,...] | MEDIUM
share.renew.acknowledge.enable | BOOLEAN | true | - | MEDIUM
share.session.timeout.ms | INT | 45000 | [1,...] | MEDIUM
streams.assignment.interval.ms | INT | 1000 | [0,...] | MEDIUM
streams.heartbeat.interval.ms | INT | 5000 | [1,...] | MEDIUM
streams.initial.rebalance.delay.ms | INT | 3000 | [0,...] | MEDIUM
streams.num.standby.replicas | INT | 0 | [0,...] | MEDIUM
streams.session.timeout.ms | INT | 45000 | [1,...] | MEDIUM
""",
)

_ONLY_OF_GROUPS = ("share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable")

GROUP_SYNONYMS: dict[str, str] = {name: f"group.{name}" for name in GROUP_KEYS if name not in _ONLY_OF_GROUPS}
"""Group setting → the broker setting that counts where the group has none."""
