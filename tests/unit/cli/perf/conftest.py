"""A broker in this process for the perf verbs, and a topic that only the test uses."""

from tests.unit.cli.real_broker import broker, ottla, topic, topic_partitions

__all__ = ["broker", "ottla", "topic", "topic_partitions"]
