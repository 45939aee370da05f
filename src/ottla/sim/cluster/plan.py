"""Turns a seed into the plan of a run with several nodes: topics and clients as with one node, and troubles of the nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from ottla.sim.plan import EXPIRING_OFFSETS, FLUSHED, Plan, make_plan

NODES = 3
JOIN_KINDS = ("stale join", "stale join", "lonely leader")
"""What may also happen where partitions have replicas."""
KINDS = (
    *("kill", "kill", "kill", "crash", "crash"),
    *("power", "power", "power crash"),
    *("stop", "pause", "pause"),
    *("cut off", "cut off", "deaf", "mute", "split", "client"),
    *("storm", "slow disk", "clock"),
    "kill all",
)
"""What may happen, see `troubles.py`."""
LOSES_POWER = {"power": "kill", "power crash": "crash"}
"""Kinds that lose unsynced writes → what happens instead where acknowledged records are neither synced nor replicated."""
DISK_KINDS = ("wipe", "full disk")
"""What may also happen to disks where partitions have replicas."""
AT_ONCE = {"crash": "kill", "power crash": "power"}
"""Ends in the middle of a change to the disk → those that come at once."""
QUORUM_SETTINGS = {
    "controller.quorum.election.timeout.ms": "400",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.fetch.timeout.ms": "800",
    "controller.quorum.request.timeout.ms": "800",
    "broker.heartbeat.interval.ms": "150",
    "broker.session.timeout.ms": "900",
    "request.timeout.ms": "3000",
}
"""Short timeouts. A Fetch of the quorum is parked for up to 500 ms, so the fetch timeout is longer."""


LAG_MAX_MS = 1500
"""replica.lag.time.max.ms."""
LATE_COMMITS = {"offsets.commit.timeout.ms": "200"}


@dataclass(frozen=True, slots=True)
class Trouble:
    """One trouble of a node."""

    kind: str
    at_s: float
    """When it begins, after the clients have started."""
    length_s: float
    is_aimed: bool
    """Whether it is the active controller's node; else `node`."""
    node: int
    changes: int
    """For a crash: how many disk changes succeed before."""


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The plan of a run with several nodes."""

    base: Plan
    """Topics, clients, network and settings, as for one node."""
    nodes: int
    is_static: bool
    """Whether the voters of the quorum are in the settings, instead of in its log."""
    rates: tuple[float, ...]
    """How fast the clock of each node runs."""
    troubles: tuple[Trouble, ...]
    replication_factor: int = 1
    controllers: int | None = None
    """How many nodes are controllers, too; None: all. The others are brokers alone."""

    @property
    def has_wipes(self) -> bool:
        """Whether a node may lose all its files."""
        return any(trouble.kind in ("wipe", "rot", "replace") for trouble in self.troubles)

    @property
    def nodes_max(self) -> int:
        """How many nodes there may be in the run, with those that replace others."""
        return self.nodes + sum(trouble.kind == "replace" for trouble in self.troubles)

    @property
    def seed(self) -> int:
        return self.base.seed


def make_cluster_plan(seed: int, nodes: int = NODES, replicas: int = 1) -> ClusterPlan:
    """The plan of a seed; with `replicas` of every topic."""
    random = Random(f"{seed}/plan/cluster")
    base = _base(make_plan(seed), random)
    kinds = [random.choice(KINDS) for _ in range(random.randint(2, 6))]
    is_replicated = replicas > 1
    is_flushed = base.is_flushed or (any(kind in LOSES_POWER for kind in kinds) and random.random() < 0.7)
    if is_flushed:
        base = replace(base, settings=base.settings | FLUSHED)
    elif not is_replicated:
        kinds = [LOSES_POWER.get(kind, kind) for kind in kinds]
    if is_replicated:
        base = _replicated(base, replicas, random)
        base = replace(base, settings=base.settings | _late_commits(seed))
        kinds[:2] = [random.choice((kind, *JOIN_KINDS)) for kind in kinds[:2]]
        if not is_flushed:  # a crash comes later than it is decided, and the ISR may have shrunk by then
            kinds = [AT_ONCE.get(kind, kind) for kind in kinds]
    # A fast clock evicts members sooner than their session timeout says, and the checkers would not expect it.
    rates = (0.8, 0.95, 1.0, 1.0) if base.groups else (0.8, 0.95, 1.0, 1.0, 1.05, 1.25)
    is_static = random.random() < 0.3
    controllers = _controllers(seed, nodes)
    return ClusterPlan(
        base,
        nodes,
        is_static,
        rates=tuple(random.choice(rates) for _ in range(nodes)),
        troubles=(
            *(_trouble(random, kind, nodes) for kind in kinds),
            *_lonely(seed, nodes),
            *_disks(seed, nodes, replicas),
            *([] if "kill all" in kinds else _rot(seed, nodes, base, replicas)),
            *_voter_changes(seed, nodes, replicas, is_static),
            *_replacements(seed, nodes, replicas, nodes if controllers is None else controllers, is_static),
        ),
        replication_factor=replicas,
        controllers=controllers,
    )


def _replicated(plan: Plan, replicas: int, random: Random) -> Plan:
    """With `replicas` of every partition. Only what a majority of them has is promised to be kept: all producers ask for it.

    In some runs nothing is committed while a replica is out of sync; the ELR is in use then.
    """
    min_isr = replicas if random.random() < 0.25 else replicas // 2 + 1
    settings = plan.settings | {
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(replicas // 2 + 1),
        "min.insync.replicas": str(min_isr),
        "replica.lag.time.max.ms": str(LAG_MAX_MS),
    }
    return replace(plan, settings=settings, producers=[replace(each, acks=-1) for each in plan.producers])


def _trouble(random: Random, kind: str, nodes: int) -> Trouble:
    return Trouble(
        kind,
        at_s=random.uniform(0, 4),
        length_s=random.choice((0.1, 0.5, 1.5, 3.0)) * random.random(),
        is_aimed=random.random() < 0.5,
        node=random.randrange(nodes),
        changes=random.randint(0, random.choice((5, 30))),
    )


def _late_commits(seed: int) -> dict[str, str]:
    """In half of the runs with replicas, a group's change is late while a follower is away, before that leaves the ISR."""
    return LATE_COMMITS if Random(f"{seed}/plan/late").random() < 0.5 else {}


def _lonely(seed: int, nodes: int) -> list[Trouble]:
    """In some runs the active controller reaches clients and no other node: what it has decided then is never committed."""
    random = Random(f"{seed}/plan/lonely")
    return [replace(_trouble(random, "lonely leader", nodes), is_aimed=True)] if random.random() < 0.4 else []


def _disks(seed: int, nodes: int, replicas: int) -> list[Trouble]:
    """In some runs with replicas a disk is lost or full."""
    random = Random(f"{seed}/plan/disks")
    kinds = [kind for kind in DISK_KINDS if random.random() < 0.25 and replicas > 1]
    return [replace(_trouble(random, kind, nodes), length_s=random.uniform(0.5, 2.0)) for kind in kinds]


def _rot(seed: int, nodes: int, base: Plan, replicas: int) -> list[Trouble]:
    """In some runs about logs with replicas a record in a closed segment is damaged for a while."""
    random = Random(f"{seed}/plan/rot")
    if base.scene != "logs" or replicas == 1 or random.random() >= 0.5:
        return []
    return [replace(_trouble(random, "rot", nodes), length_s=random.uniform(1.0, 3.0))]


def _voter_changes(seed: int, nodes: int, replicas: int, is_static: bool) -> list[Trouble]:
    """In some runs with replicas a controller is removed from the voters and added again."""
    random = Random(f"{seed}/plan/voters")
    if is_static or replicas == 1 or random.random() >= 0.25:
        return []
    return [replace(_trouble(random, "voter change", nodes), length_s=random.uniform(0.5, 2.0))]


def _replacements(seed: int, nodes: int, replicas: int, controllers: int, is_static: bool) -> list[Trouble]:
    """In some runs with replicas a node is lost for good, and one with another id takes its place.

    The settings name static voters by their ids: there, only a node that is a broker alone can be replaced.
    """
    random = Random(f"{seed}/plan/replace")
    trouble = replace(_trouble(random, "replace", nodes), length_s=random.uniform(0.2, 2.0))
    if replicas == 1 or random.random() >= 0.25 or (is_static and controllers == nodes):
        return []
    return [replace(trouble, is_aimed=False, node=random.randrange(controllers, nodes)) if is_static else trouble]


def _controllers(seed: int, nodes: int) -> int | None:
    """In half of the clusters with more than three nodes, the first three are controllers."""
    return 3 if nodes > 3 and Random(f"{seed}/plan/controllers").random() < 0.5 else None


def _base(plan: Plan, random: Random) -> Plan:
    """The plan of one node without what needs one node: its lives, aged producers, and offsets that expire with the clock."""
    settings = {name: value for name, value in plan.settings.items() if name not in EXPIRING_OFFSETS}
    settings |= QUORUM_SETTINGS
    if plan.scene != "logs":
        settings |= {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
    if random.random() < 0.5:
        settings |= {"metadata.log.max.record.bytes.between.snapshots": str(random.choice((300, 1500)))}
    topics = [replace(topic, partitions=max(topic.partitions, random.randint(2, 4))) for topic in plan.topics]
    apps = [replace(app, first_epoch=0) for app in plan.apps]
    return replace(plan, settings=settings, lives=[], topics=topics, apps=apps)
