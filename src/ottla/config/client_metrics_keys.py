"""The settings of a client metrics subscription: which metrics which clients push, and how often. Kafka 4.3's."""

from __future__ import annotations

from ottla.config.row_table import RowTable

CLIENT_METRICS_KEYS = RowTable(
    "client metrics",
    """\
interval.ms | INT | 300000 | - | MEDIUM
match | LIST | [] | distinct list | MEDIUM
metrics | LIST | [] | distinct list | MEDIUM
""",
)
