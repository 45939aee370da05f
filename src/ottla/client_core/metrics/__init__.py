"""The metrics of a client: a table of Kafka's names, sensors that record almost for free, and the ways to read them."""
