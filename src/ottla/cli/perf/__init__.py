"""The `perf` verb: measures how fast a cluster takes and gives records, with the flags and output of Kafka's perf tools."""
