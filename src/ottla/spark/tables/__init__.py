"""Tables as sinks and sources of pipelines: Delta, Iceberg and PostgreSQL. A replayed batch is never stored twice."""
