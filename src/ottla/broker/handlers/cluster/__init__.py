"""APIs that describe the cluster: versions, metadata, brokers, quorum, coordinators."""
