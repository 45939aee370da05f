"""The settings that can be set per group, with the broker's as the default."""

from __future__ import annotations

from ottla.coordinator.groups.settings import GroupSettings


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
