"""Offset commits answered from frame to frame: what calls `kernel_commit.py`, and what it looks up only once.

The pipeline hands `FrameAnswers` every OffsetCommit before it decodes it. None says that it declines the request: nothing
has been changed, and `offset_commit.py` handles it.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Instant
from ottla.errors import KafkaError
from ottla.ids import Uuid
from ottla.metadata.acls import Operation, ResourceType
from ottla.records.kernels import PURE_ASKED, load_variant
from ottla.wire.base import Part
from ottla.wire.varint import decode_uvarint

if TYPE_CHECKING:
    from ottla.broker.requests.authorization import Grants
    from ottla.broker.requests.context import Pending
    from ottla.broker.services import Services

if TYPE_CHECKING or not PURE_ASKED:
    from ottla.broker.handlers.fast_path.kernel_commit import FastCommit
    from ottla.broker.handlers.fast_path.kernel_commit_records import KnownGroup, KnownTopic
else:
    FastCommit = load_variant("kernel_commit", pure=True, room="broker.handlers.fast_path").FastCommit
    _records = load_variant("kernel_commit_records", pure=True, room="broker.handlers.fast_path")
    KnownGroup, KnownTopic = _records.KnownGroup, _records.KnownTopic

KNOWN_GROUPS_MAX = 10_000
KNOWN_TOPICS_MAX = 20_000
"""Of all groups together, each group's counted apart. Beyond it everything is forgotten, and looked up again when needed."""
GROUP_ID_SIZE_MAX = 256
"""Groups with longer ids are declined: clients choose the ids, and so how much memory is used here."""
_KEY_TYPE = 1
_INT16 = Struct(">h")


class FrameAnswers:
    """One node's, for OffsetCommit requests."""

    __slots__ = ("_clock", "_fast", "_host", "_topics")

    def __init__(self, services: Services) -> None:
        self._host = services.coordinators.groups
        self._clock = services.world.clock
        self._topics = 0
        self._fast = FastCommit(self._host.known, self._find_group, self._find_topic)

    def answer(self, frame: bytearray, grants: Grants | None) -> list[Part] | Pending | None:
        """The reply, now or later; None, with nothing changed, where the request is declined."""
        clock = self._clock
        now_ms = clock.now_ms()
        groups = topics = None
        if grants is not None:
            groups = grants.granted(Operation.READ, ResourceType.GROUP)
            topics = grants.granted(Operation.READ, ResourceType.TOPIC)
        reply = self._fast.answer(frame, Instant(now_ms, int(clock.monotonic_s() * 1000)), now_ms, groups, topics)
        return [reply] if isinstance(reply, bytearray) else reply

    def _find_group(self, name: bytes) -> KnownGroup | None:
        """Where the group of this id commits, noted; None if that is not here."""
        if len(name) > GROUP_ID_SIZE_MAX:
            return None
        group_id = name.decode()
        try:
            hosted = self._host.shard_for(group_id)
        except KafkaError:
            return None
        shard, partition = hosted.shard, hosted.partition
        known = self._host.known
        if len(known) >= KNOWN_GROUPS_MAX:
            known.clear()
        if not known:
            self._topics = 0
        group = known[name] = KnownGroup(
            group_id,
            hosted,
            shard.offsets,
            partition,
            hosted.epoch,
            shard.table.settings.offset_metadata_max_bytes,
            partition.log.config.max_message_bytes,
        )
        return group

    def _find_topic(self, group: KnownGroup, given: bytes, is_id: bool) -> KnownTopic | None:
        """The topic of this id, or of this name behind its length, noted; None if there is none."""
        topics = group.hosted.shard.table.topics
        if is_id:
            topic_id: Uuid | None = Uuid(given)
            name = topics.name_of(topic_id)
        else:
            name = given[decode_uvarint(given, 0)[1] :].decode()
            topic_id = topics.id_of(name)
        if name is None or topic_id is None:
            return None
        self._topics += 1
        if self._topics > KNOWN_TOPICS_MAX:
            self._host.known.clear()
        key_head = _INT16.pack(_KEY_TYPE) + _text(group.group_id) + _text(name)
        value_tail = b"\1\0\x10" + topic_id  # one tag, number 0, of 16 bytes
        topic = KnownTopic(name, topic_id, topics.partition_count(name), key_head, value_tail)
        (group.by_id if is_id else group.by_name)[given] = topic
        return topic


def _text(text: str) -> bytes:
    data = text.encode()
    return _INT16.pack(len(data)) + data
