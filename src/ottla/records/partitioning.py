"""Which partition a record with a key goes to: by the key's hash, as in Kafka's Java client, so that all clients agree."""

from ottla.records.kernels import murmur2, partition_of_key

__all__ = ["murmur2", "partition_of_key"]
