"""Watch: detects changes of the topics that groups read, by the metadata hash and by resolving regular expressions.

Keeps what is in no record: which groups were compared since their topics last changed. Regular expressions (`expressions.py`)
are resolved here, within the heartbeat, and not by clients. As in Kafka they match the topics that the member of that heartbeat
may describe.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from ottla.coordinator.contract import Caller, Instant
from ottla.coordinator.groups.consumer.expressions import compiled
from ottla.coordinator.groups.consumer.group import ConsumerGroup, epoch_record, no_partition_metadata, regex_record
from ottla.coordinator.groups.consumer.metadata_hash import TopicHashes
from ottla.coordinator.groups.consumer.replay import GroupDraft
from ottla.coordinator.groups.table import GroupTable

logger = logging.getLogger("ottla.coordinator")

REGEX_REFRESH_MIN_MS = 10_000
"""The shortest time between two matches of a group's expressions against all topics, however often topics change."""
MATCHES_PER_HEARTBEAT = 50_000
"""The most names that one heartbeat matches against expressions; the rest waits for the next heartbeat of any member."""


class Watch:
    """The state of the comparison for all groups of one shard."""

    def __init__(self, table: GroupTable) -> None:
        self._table = table
        self._hashes = TopicHashes()
        self._compared: set[str] = set()
        """Groups whose hash was compared since any of their topics changed."""
        self._resolved: dict[str, tuple[object, int, int]] = {}
        """Group → the topics that its expressions were last matched against, the access rules' version, the steady time."""
        self._stale: dict[str, tuple[str, ...]] = {}
        """Group → expressions to match again, since topics or access rules have changed."""

    def topics_changed(self, names: Collection[str] | None) -> None:
        """These topics were created, deleted or changed; None: any may have been."""
        self._hashes.forget(names)
        if names is None:
            self._compared.clear()
            return
        changed = frozenset(names)
        for group_id in list(self._compared) if changed else ():
            group = self._table.by_id.get(group_id)
            if not isinstance(group, ConsumerGroup) or group.is_subscribed_to_any(changed):
                self._compared.discard(group_id)

    def forget(self, group_id: str) -> None:
        self._compared.discard(group_id)
        self._resolved.pop(group_id, None)
        self._stale.pop(group_id, None)

    def hash_of(self, group: ConsumerGroup) -> int:
        return self._hashes.of_group(group.subscribed(), self._table.topics)

    # -- The hash

    def compare(self, draft: GroupDraft, has_changed: bool) -> None:
        """Begin a new epoch of the group if `has_changed`, or if its topics have changed since the last comparison."""
        group_id = draft.group.group_id
        if not has_changed and group_id in self._compared:
            return
        metadata_hash = self.hash_of(draft.group)
        draft.when_decided(lambda: self._compared.add(group_id))
        if has_changed or metadata_hash != draft.group.metadata_hash:
            draft.write([epoch_record(group_id, draft.group.epoch + 1, metadata_hash)])
            logger.info("group %s is in epoch %d: it, or a topic it reads, has changed", group_id, draft.group.epoch)
        if draft.group.has_partition_metadata:
            draft.write([no_partition_metadata(group_id)])

    # -- Regular expressions

    def resolve(self, draft: GroupDraft, caller: Caller, now: Instant) -> bool:
        """Match expressions that are new or stale. Returns whether the topics of any have changed."""
        group = draft.group
        if not group.regex_counts:
            return False
        wanted = [regex for regex in group.regex_counts if regex not in group.resolved]
        topics, rules = self._table.topics, caller.rules_version
        stale = self._stale.get(group.group_id, ())
        checked = self._resolved.get(group.group_id)
        is_due = checked is None or now.steady_ms >= checked[2] + REGEX_REFRESH_MIN_MS
        if not stale and is_due and (checked is None or checked[0] is not topics or checked[1] != rules):
            stale = tuple(regex for regex in group.regex_counts if regex in group.resolved)
            draft.when_decided(lambda: self._resolved.update({group.group_id: (topics, rules, now.steady_ms)}))
        if not wanted and not stale:
            return False
        names = list(topics.names())
        count = max(1, MATCHES_PER_HEARTBEAT // max(1, len(names)))
        wanted += [regex for regex in stale[:count] if regex in group.regex_counts]
        draft.when_decided(lambda: self._stale.update({group.group_id: stale[count:]}))
        has_changed, may_describe = False, caller.may_describe
        for regex in wanted:
            matches = compiled(regex).fullmatch
            found = tuple(name for name in names if matches(name) and (may_describe is None or may_describe(name)))
            known = group.resolved.get(regex)
            if known is None or known.topics != found:
                draft.write([regex_record(group.group_id, regex, found, topics.version, now.wall_ms)])
                has_changed = True
        return has_changed
