"""The metrics of the cluster, as the metadata that this node has applied describes it; and a count of unclean elections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.metadata.image.topics import NO_LEADER

if TYPE_CHECKING:
    from ottla.metadata.image.delta import MetadataDelta
    from ottla.metadata.image.image import MetadataImage
    from ottla.metrics_text import MetricsText

_PREFIX = "kafka_controller_kafkacontroller"


class ElectionCounter:
    """Counts the elections that this node has seen in the metadata since it started."""

    __slots__ = ("unclean",)

    def __init__(self) -> None:
        self.unclean = 0
        """Elections of a leader that was neither in the ISR nor in the ELR: acknowledged records may be lost."""

    def count(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """`delta` led to `image`."""
        for topic_id in delta.changed_topics:
            before, now = delta.base.topics.by_id.get(topic_id), image.topics.by_id.get(topic_id)
            if before is None or now is None:
                continue
            for index, state in now.partitions.items():
                known = before.partitions.get(index)
                if known is None or known is state or state.leader in (NO_LEADER, known.leader):
                    continue
                self.unclean += state.leader not in known.isr and state.leader not in known.elr


def write_cluster(
    text: MetricsText,
    image: MetadataImage,
    is_active_controller: bool,
    elections: ElectionCounter,
    has_controller: bool = True,
) -> None:
    """Add the families of the cluster to the page. Without a controller (`has_controller`) the image is the last known one."""
    states = [state for topic in image.topics.by_name.values() for state in topic.partitions.values()]
    brokers = image.cluster.brokers.values()
    offline = imbalanced = out_of_sync = 0
    for state in states:
        offline += state.leader == NO_LEADER
        imbalanced += state.leader != state.replicas[0]
        out_of_sync += state.leader == NO_LEADER or len(state.isr) < len(state.replicas)
    for name, words, value in (
        ("activecontrollercount", "Whether this node is the active controller.", is_active_controller),
        ("globaltopiccount", "Topics of the cluster.", len(image.topics.by_name)),
        ("globalpartitioncount", "Partitions of the cluster.", len(states)),
        ("offlinepartitionscount", "Partitions without a leader.", offline),
        ("preferredreplicaimbalancecount", "Partitions that their preferred replica does not lead.", imbalanced),
        (
            "activebrokercount",
            "Brokers that are neither fenced nor shutting down.",
            sum(broker.is_active for broker in brokers),
        ),
        ("fencedbrokercount", "Brokers that are fenced.", sum(broker.fenced for broker in brokers)),
    ):
        text.gauge(f"{_PREFIX}_{name}", words, value)
    text.counter(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "Leaders elected that may lack acknowledged records.",
        elections.unclean,
    )
    text.gauge(
        "ottla_cluster_healthy",
        "1 if a controller answers, every partition of the cluster has a leader and all its replicas are in sync.",
        has_controller and out_of_sync == 0,
    )
