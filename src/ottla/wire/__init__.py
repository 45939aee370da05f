"""Kafka's wire protocol without IO: the schema table, the codec compiler, primitives, headers and framing."""
