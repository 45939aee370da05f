"""The rows of `make bench-cluster`: their names, units and goals. Pure."""

from dataclasses import dataclass

from bench.side_by_side.figures import Figure, Goal, at_least, at_most

PARTITIONS = 6
REPLICAS = (1, 3)
"""The replication factors of the produce rows."""


@dataclass(frozen=True, slots=True)
class Load:
    """Records for ProducerPerformance."""

    part: str
    what: str
    record_bytes: int
    records: int
    quick_records: int


LOADS = (
    Load("1kb", "1 KB", 1000, 500_000, 100_000),
    Load("100b", "100 B", 100, 2_500_000, 500_000),
)

GROUPS = ("start", "memory", "produce", "latency", "leader", "failover", "partitions")
"""What `--rows` chooses from, in the order they run. A row's key begins with the name of its group."""

SELDOM = ("many", "two-nodes")
"""More of them, which are long and run only when they are named."""

Row = tuple[str, str, Goal | None]


def table(idle_partitions: int) -> dict[str, Row]:
    """Key → text, unit and goal of every row."""
    idle = f"{idle_partitions:,} idle partitions × 3 replicas"
    rows: dict[str, Row] = {
        "start": ("three nodes: start to the first produced record", "ms", at_most(0.2)),
        "memory": ("three nodes: memory, idle", "MB", at_most(0.2)),
    }
    for load in LOADS:
        for replicas in REPLICAS:
            copies = "1 replica" if replicas == 1 else f"{replicas} replicas"
            what = f"produce {load.what} × {PARTITIONS} partitions, {copies}"
            rows[f"produce:{load.part}-r{replicas}"] = (f"{what}, acks=all", "MB/s", at_least(1.0))
            rows[f"produce:{load.part}-r{replicas}-cpu"] = (f"CPU of the three nodes, {what}", "s per GB", at_most(0.6))
    return rows | {
        "latency:p50": ("produce 1 KB, 3 replicas, acks=all, 200 requests/s, p50", "ms", at_most(1.0)),
        "latency:p99": ("produce 1 KB, 3 replicas, acks=all, 200 requests/s, p99", "ms", at_most(1.0)),
        "leader": ("kill -9 of a leader to the next record on its partition, acks=all", "ms", at_most(1.0)),
        "failover": ("kill -9 of the controller to the next one's first topic", "ms", at_most(1.0)),
        "partitions:cpu": (f"{idle}: CPU of the three nodes", "% of a core", at_most(1.0)),
        "partitions:memory": (f"{idle}: memory of the three nodes", "MB", at_most(0.5)),
        "partitions:leaders": (f"{idle}: kill -9 of a node until all have leaders", "ms", at_most(1.0)),
    }


def figures(rows: dict[str, Row], apache: dict[str, list[float]], ottla: dict[str, list[float]]) -> list[Figure]:
    """The `rows` that were measured on both sides, from their samples by key. A sample without its pair is left out."""
    measured = []
    for key, (what, unit, goal) in rows.items():
        pairs = min(len(apache.get(key, ())), len(ottla.get(key, ())))
        if pairs:
            measured.append(Figure(f"cluster:{key}", what, unit, apache[key][:pairs], ottla[key][:pairs], goal))
    return measured
