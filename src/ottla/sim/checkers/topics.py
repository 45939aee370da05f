"""Acknowledged changes of topics (created, deleted, partitions added, configs set) last, also after a power loss."""

from ottla.ids import Uuid, uuid_text
from ottla.sim.checkers.checker import Checker, TopicPlan, Violation


class LastingTopics(Checker):
    """Remembers the topics that must exist."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicPlan] = {}

    def topic_made(self, topic: TopicPlan) -> None:
        self._topics[topic.name] = topic

    def topic_deleted(self, topic: TopicPlan) -> None:
        self._topics.pop(topic.name, None)

    def topics_answered(self, found: dict[str, tuple[Uuid, int]], configs: dict[str, dict[str, str]]) -> None:
        if sorted(found) != sorted(self._topics):
            raise Violation(f"there should be the topics {sorted(self._topics)}, and there are {sorted(found)}")
        for name, topic in self._topics.items():
            topic_id, partitions = found[name]
            if topic_id != topic.topic_id:
                raise Violation(f"topic {name} was made as {uuid_text(topic.topic_id)}, and now it is {uuid_text(topic_id)}")
            if partitions != topic.partitions:
                raise Violation(f"topic {name} has {topic.partitions} partitions, but the node reports {partitions}")
            if configs[name] != topic.configs:
                raise Violation(f"topic {name} was configured with {topic.configs}, but the node reports {configs[name]}")
