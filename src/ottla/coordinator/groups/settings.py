"""The settings of the group coordinator. The runtime builds them from the broker's, and again when those change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class GroupSettings(NamedTuple):
    """Named as the broker's settings; see docs/configuration.md."""

    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 604_800_000
    offsets_retention_check_interval_ms: int = 600_000
    group_initial_rebalance_delay_ms: int = 3000
    group_min_session_timeout_ms: int = 6000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5000
    group_consumer_min_heartbeat_interval_ms: int = 5000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_assignment_interval_ms: int = 1000
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_migration_policy: str = "bidirectional"
    rebalance_protocols: tuple[str, ...] = ("classic", "consumer")
    """group.coordinator.rebalance.protocols, without those that are not served."""
    of_groups: Mapping[str, Mapping[str, str]] = {}
    """Settings of single groups, by group id; only those that were set."""


# The settings that can be set per group, with the broker's as the default.


def session_timeout_ms(settings: GroupSettings, group_id: str) -> int:
    return _own_ms(settings, group_id, "consumer.session.timeout.ms", settings.group_consumer_session_timeout_ms)


def heartbeat_interval_ms(settings: GroupSettings, group_id: str) -> int:
    return _own_ms(settings, group_id, "consumer.heartbeat.interval.ms", settings.group_consumer_heartbeat_interval_ms)


def assignment_interval_ms(settings: GroupSettings, group_id: str) -> int:
    return _own_ms(settings, group_id, "consumer.assignment.interval.ms", settings.group_consumer_assignment_interval_ms)


def _own_ms(settings: GroupSettings, group_id: str, name: str, default_ms: int) -> int:
    own = settings.of_groups.get(group_id, {}).get(name)
    try:
        return default_ms if own is None else int(own)
    except ValueError:
        return default_ms  # an invalid value, stored by another version of Kafka
