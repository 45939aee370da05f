"""The `perf` verb: measures how fast a cluster takes and gives records, with the flags of Kafka's perf tools."""
