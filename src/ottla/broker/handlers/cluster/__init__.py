"""APIs that tell who is who: versions, metadata, brokers, quorum, coordinators."""
