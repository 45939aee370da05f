"""Which replica a consumer should read from (KIP-392): one in its rack, if the leader is in another.

The node's replica.selector.class decides whether consumers are sent away at all; only Apache's rack-aware selector is known
here. Followers answer every consumer that asks them, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.metadata.image.cluster import ClusterImage

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
THIS_LEADER: Final = -1


def nearest_replica(partition: Partition, cluster: ClusterImage, rack: str, offset: int) -> int:
    """The replica in `rack` that has `offset` and is furthest; `THIS_LEADER` if this leader is in the rack, or no other is.

    Only replicas in the ISR: behind one that lags, consumers would lag too, and be sent there again and again.
    """
    in_sync = partition.in_sync
    own = cluster.brokers.get(partition.node_id)
    if in_sync is None or (own is not None and own.rack == rack):
        return THIS_LEADER
    best, best_end = THIS_LEADER, -1
    for each, state in in_sync.remote.items():
        broker, end = cluster.brokers.get(each), in_sync.ends.get(each, -1)
        is_near = broker is not None and broker.is_active and broker.rack == rack
        if is_near and each in partition.isr and 0 <= state.log_start_offset <= offset <= end and end > best_end:
            best, best_end = each, end
    return best
