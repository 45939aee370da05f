"""The assignment that the coordinator wants a KIP-848 member to have, and how it becomes the member's own.

The coordinator names topics by id. A topic that the metadata does not know yet waits until it does; the rest is not held up.
"""

from __future__ import annotations

from ottla.client_core.group.collaborators import MetadataView
from ottla.client_core.group.consumer_heartbeat import PartitionsById
from ottla.client_core.group.handover import Handover
from ottla.client_core.group.membership import Partitions
from ottla.client_core.group.subscribed_topics import SubscribedTopics
from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.consumer_group_heartbeat import Assignment


class ConsumerTarget:
    """The target of a member, and the ids of the topics that it owns."""

    def __init__(self, handover: Handover, metadata: MetadataView, topics: SubscribedTopics) -> None:
        self._handover = handover
        self._metadata = metadata
        self._topics = topics
        self._target: dict[Uuid, tuple[int, ...]] | None = None
        self._is_first = True
        self._ids: dict[str, Uuid] = {}
        """The ids of the topics that the member owns partitions of. A topic of the same name may have another one later."""
        self._asked_after = -1
        """The number of metadata responses when more was asked for: each is waited for once."""

    @property
    def is_reached(self) -> bool:
        """Whether the owner has all that the coordinator has assigned, and nothing else."""
        return self._target is None and not self._is_first

    def set(self, assignment: Assignment) -> None:
        """A heartbeat's answer has brought a target."""
        self._target = {each.topic_id: tuple(sorted(each.partitions)) for each in assignment.topic_partitions}

    def reset(self) -> None:
        """The membership has ended."""
        self._target = None
        self._is_first = True
        self._ids = {}
        self._asked_after = -1

    def held(self) -> PartitionsById:
        """What the member owns, as heartbeats say it."""
        found: dict[Uuid, list[int]] = {}
        for topic, partition in sorted(self._handover.assigned):
            found.setdefault(self._ids[topic], []).append(partition)
        return {topic_id: tuple(partitions) for topic_id, partitions in found.items()}

    def advance(self) -> None:
        """The next step towards the target: give up what is not in it, or take what is new. Then it is the owner's turn."""
        if self._target is None:
            return
        names = self._names_in(self._target)
        if self._handover.revoke(self._not_in_target(self._target)):
            return
        wanted = self._handover.assigned | {
            TopicPartition(name, index) for topic_id, name in names.items() for index in self._target[topic_id]
        }
        is_first_known = self._is_first and bool(names or not self._target)
        if is_first_known or wanted != self._handover.assigned:
            self._is_first = False
            self._ids = {name: topic_id for topic_id, name in names.items()} | {
                topic: self._ids[topic] for topic, _ in self._handover.assigned
            }
            self._handover.assign(wanted)
        if len(names) == len(self._target):
            self._target = None
            self._topics.want_by_id(names.values(), is_complete=True)
        elif self._asked_after != self._metadata.full_responses:
            self._asked_after = self._metadata.full_responses
            self._topics.want_by_id(names.values(), is_complete=False)
            self._metadata.refresh("the coordinator has assigned partitions of a topic that is not known yet")

    def _names_in(self, target: dict[Uuid, tuple[int, ...]]) -> dict[Uuid, str]:
        """The names of the topics in it that are known."""
        names = {topic_id: name for name, topic_id in self._ids.items() if topic_id in target}
        for topic_id in target:
            topic = self._metadata.topic_of_id(topic_id)
            if topic is not None:
                names[topic_id] = topic.name
        return names

    def _not_in_target(self, target: dict[Uuid, tuple[int, ...]]) -> Partitions:
        """What the member owns and should not; of a topic that was deleted and created again, everything."""
        return frozenset(
            each for each in self._handover.assigned if each.partition not in target.get(self._ids[each.topic], ())
        )
