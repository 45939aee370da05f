"""The group settings of Kafka 4.3, and the broker settings that are their defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.config.row_table import RowTable
from ottla.config.values import InvalidConfig, Value

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
"""Group setting → the broker setting that is its default."""

_BOUNDED = {
    "consumer": ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"),
    "share": (
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "assignment.interval.ms",
        "record.lock.duration.ms",
        "delivery.count.limit",
        "partition.max.record.locks",
    ),
    "streams": ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"),
}
"""Kind of group → its settings that the broker's `group.KIND.min.…` and `group.KIND.max.…` bound."""


def validate_group_settings(settings: Mapping[str, str], broker_value: Callable[[str], Value]) -> None:
    """Raise `InvalidConfig` if a group may not have `settings`. `broker_value` returns the value of a broker setting."""
    GROUP_KEYS.require_known(settings)
    parsed = GROUP_KEYS.parse_known(settings)

    def number(name: str, value: Value) -> int:
        assert isinstance(value, int), name
        return value

    def value_of(name: str) -> int:
        return number(name, parsed[name] if name in parsed else broker_value(GROUP_SYNONYMS[name]))

    for kind, names in _BOUNDED.items():
        for what in names:
            name = f"{kind}.{what}"
            # The broker's interval may change later, so only an interval that the group itself sets is checked here.
            if what != "assignment.interval.ms" or name in parsed:
                _check_bound(name, value_of(name), f"group.{kind}.min.{what}", f"group.{kind}.max.{what}", broker_value)
        if value_of(f"{kind}.session.timeout.ms") <= value_of(f"{kind}.heartbeat.interval.ms"):
            raise InvalidConfig(
                f"{kind}.session.timeout.ms",
                f"{kind}.session.timeout.ms={value_of(f'{kind}.session.timeout.ms')} must be more than "
                f"{kind}.heartbeat.interval.ms={value_of(f'{kind}.heartbeat.interval.ms')}",
            )
    _check_bound("streams.num.standby.replicas", value_of("streams.num.standby.replicas"), None,
                 "group.streams.max.standby.replicas", broker_value)  # fmt: skip


def _check_bound(name: str, value: int, least: str | None, most: str, broker_value: Callable[[str], Value]) -> None:
    low, high = (0 if least is None else broker_value(least)), broker_value(most)
    assert isinstance(low, int)
    assert isinstance(high, int)
    if value < low:
        raise InvalidConfig(name, f"{name}={value} must be at least {low}, the broker's {least}")
    if value > high:
        raise InvalidConfig(name, f"{name}={value} must be at most {high}, the broker's {most}")
