"""Turns a seed into the plan of a run: topics, clients, faults, and how each life of the node ends."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field, replace
from random import Random

from ottla.coordinator.transactions.transaction import EPOCH_MAX
from ottla.sim.clients.consumer import ConsumerPlan
from ottla.sim.clients.member import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS
from ottla.sim.clients.producer import ProducerPlan
from ottla.sim.machine import DIRECTORIES, DiskFault
from ottla.sim.net import Weather

FLUSHED = {"log.flush.interval.messages": "1"}
"""Everything is flushed before it is acknowledged, including the coordinators' records."""
ABORT_INTERVAL_MS = 300
CLOCK_ERRORS_MS = (0, 0, 0, 1_000, -1_000, 8_000, -8_000)
"""Clock errors in runs with transactions. Small, because transactions time out by the wall clock and must end in the run."""
EXPIRING_OFFSETS = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "150"}
"""Unused offsets expire when the wall clock is set forward. Groups without members and offsets are removed."""
OFFSETS_RETENTION_S = 60.0
TRANSACTION_TIMEOUTS_MS = (1_000, 4_000)
NEWEST_VERSION = 2
"""The newest transaction.version."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One group."""

    name: str
    protocol: str
    """"classic", "consumer", "mixed" (members of both) or "simple"."""
    instances: tuple[str | None, ...]
    """One per member: its group.instance.id, if it has one. Two members with the same one fence each other."""
    is_cleaned: bool = False
    """Whether a `Cleaner` deletes its offsets and the group itself."""
    is_reading: bool = False
    """Whether its members read and commit automatically; else they commit numbers of their own."""

    def speaks_classic(self, index: int) -> bool:
        """Whether that member uses the classic protocol. In a mixed group every second member does."""
        return self.protocol == "classic" or (self.protocol == "mixed" and index % 2 == 0)


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """The cluster's transaction.version."""

    first: int = NEWEST_VERSION
    is_raised: bool = False
    """Whether the administrator raises it to the newest while programs run."""


@dataclass(frozen=True, slots=True)
class AppPlan:
    """A program that writes transactions: one or two instances with one transactional id. It may transform an input topic."""

    name: str
    is_transforming: bool
    """Whether it reads the input topic and commits its offsets in its transactions."""
    instances: tuple[int, ...]
    """The newest transaction version that each instance uses."""
    timeout_ms: int
    first_epoch: int = 0
    """The first epoch of its producer. Close to the maximum, the epochs run out soon, and a new producer id is needed."""

    is_expiring: bool = False
    """Whether its transactional id expires when it is unused for a short time."""

    @property
    def may_change_producer(self) -> bool:
        """Whether its transactional id may get another producer id."""
        return self.first_epoch > 0 or self.is_expiring


def plan_groups(random: Random) -> list[GroupPlan]:
    """One or two groups."""
    groups = []
    for index in range(random.randint(1, 2)):
        protocol = random.choice(("classic", "classic", "consumer", "consumer", "simple"))
        count = random.randint(1, 2) if protocol == "simple" else random.randint(2, 4)
        instances = tuple(
            random.choice(("i0", "i1")) if protocol != "simple" and random.random() < 0.3 else None for _ in range(count)
        )
        groups.append(GroupPlan(f"{protocol}{index}", protocol, instances))
    return groups


def mix_groups(groups: list[GroupPlan], random: Random) -> list[GroupPlan]:
    """Give some groups members of both protocols; their classic members are not static."""
    mixed = []
    for index, group in enumerate(groups):
        if group.protocol != "simple" and random.random() < 0.3:
            instances = tuple(None if each % 2 == 0 else name for each, name in enumerate(group.instances))
            group = replace(group, name=f"mixed{index}", protocol="mixed", instances=instances)
        mixed.append(group)
    return mixed


def clean_groups(groups: list[GroupPlan], random: Random) -> list[GroupPlan]:
    """Give some groups a cleaner."""
    return [replace(group, is_cleaned=random.random() < 0.3) for group in groups]


def let_read(groups: list[GroupPlan], random: Random) -> list[GroupPlan]:
    """Let some groups read."""
    return [replace(group, is_reading=group.protocol != "simple" and random.random() < 0.3) for group in groups]


def with_committer(groups: list[GroupPlan]) -> list[GroupPlan]:
    """Make sure that one group has no members: its offsets expire sooner."""
    if any(group.protocol == "simple" for group in groups):
        return groups
    return [*groups, GroupPlan(f"simple{len(groups)}", "simple", (None,))]


def plan_apps(random: Random) -> list[AppPlan]:
    """One or two programs; the first one transforms."""
    return [
        AppPlan(
            name=f"app{index}",
            is_transforming=index == 0 or random.random() < 0.5,
            instances=tuple(random.choice((1, 2)) for _ in range(random.choice((1, 1, 2)))),
            timeout_ms=random.choice(TRANSACTION_TIMEOUTS_MS),
        )
        for index in range(random.randint(1, 2))
    ]


def age_apps(apps: list[AppPlan], random: Random) -> list[AppPlan]:
    """Start some programs with few epochs left."""
    return [replace(app, first_epoch=EPOCH_MAX - random.randint(1, 8)) if random.random() < 0.3 else app for app in apps]


def expire_ids(apps: list[AppPlan], random: Random) -> tuple[list[AppPlan], dict[str, str]]:
    """In some runs, let unused transactional ids expire by the wall clock. Returns the programs and the node's settings."""
    if not apps or random.random() >= 0.25:
        return apps, {}
    settings = {
        "transactional.id.expiration.ms": random.choice(("50", "300")),
        "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    }
    return [replace(app, is_expiring=True) for app in apps], settings


def plan_version(random: Random) -> VersionPlan:
    """Mostly the version of a new cluster; else an older one, which some runs raise."""
    first = random.choice((NEWEST_VERSION, NEWEST_VERSION, NEWEST_VERSION, 1, 0))
    return VersionPlan(first, is_raised=first < NEWEST_VERSION and random.random() < 0.5)


def coordinator_settings(random: Random, is_flushed: bool) -> dict[str, str]:
    """Settings for coordinators on a single node: short timeouts, and logs that are often rolled and compacted."""
    settings = {
        "offsets.topic.num.partitions": "2",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "2",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(ABORT_INTERVAL_MS),
        "group.initial.rebalance.delay.ms": random.choice(("0", "0", "100")),
        "group.min.session.timeout.ms": "100",
        "group.consumer.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
        "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
    }
    if is_flushed:
        settings |= FLUSHED
    if random.random() < 0.5:
        settings |= {"log.roll.ms": random.choice(("50", "300")), "log.cleaner.min.cleanable.ratio": "0.01"}
    return settings


SCENES = ("logs", "groups", "transactions")
"""The kinds of runs; seeds take turns."""
ENDS = ("kill", "kill", "crash", "crash", "power", "power crash", "stop")
"""How a life may end: a kill at some time or in the middle of a disk change, either with power loss, or a clean shutdown."""

FAR_OFF_MS = 1_500_000
"""The largest error of a clock, and how far it is set forward."""


@dataclass(frozen=True, slots=True)
class TopicSetup:
    """A topic for the clients."""

    name: str
    partitions: int
    configs: dict[str, str]


@dataclass(frozen=True, slots=True)
class Life:
    """How one life of the node goes."""

    end: str
    length_s: float
    """Until the end. For a crash: until the counting of disk changes begins."""
    changes: int
    """How many disk changes succeed before a crash."""
    down_s: float
    slowness_s: float
    clock_error_ms: int
    """The error of the node's wall clock, set at the start of this life."""
    is_parted: bool
    """Whether one client is partitioned from the node for a while."""
    fault: DiskFault | None
    """A disk fault, until the next life."""
    waits_for_ending: bool = False
    """Whether the end comes shortly after an EndTxn was sent, which then may get no answer."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run."""

    seed: int
    weather: Weather
    topics: list[TopicSetup]
    producers: list[ProducerPlan]
    consumers: list[ConsumerPlan]
    lives: list[Life]
    settings: dict[str, str]
    """Settings of the node, besides those of every node."""
    admin_pause_s_max: float
    scene: str = "logs"
    groups: list[GroupPlan] = field(default_factory=list)
    apps: list[AppPlan] = field(default_factory=list)
    version: VersionPlan = field(default_factory=VersionPlan)

    @property
    def is_flushed(self) -> bool:
        """Whether the node flushes all writes before it acknowledges them."""
        return FLUSHED.items() <= self.settings.items()

    @property
    def has_expiring_offsets(self) -> bool:
        return EXPIRING_OFFSETS.items() <= self.settings.items()

    @property
    def transaction_timeout_ms_max(self) -> int:
        return max((app.timeout_ms for app in self.apps), default=0)


def scene_of(seed: int) -> str:
    """The kind of a seed's run."""
    return SCENES[seed % len(SCENES)]


def make_plan(seed: int) -> Plan:
    """The plan of a seed."""
    random = Random(f"{seed}/plan")
    scene = scene_of(seed)
    if scene == "logs":
        return _logs(random, seed)
    return _with_expiry(_coordinators(random, seed, scene))


def _logs(random: Random, seed: int) -> Plan:
    """Plain and idempotent producers, consumers in assign mode, topics of all kinds."""
    weather = _weather(random)
    topics = [_topic(random, index) for index in range(random.randint(1, 2))]
    lives = [_life(random) for _ in range(random.randint(1, 4))]
    if random.random() < 0.5 and any("flush.ms" in topic.configs for topic in topics):
        # Long enough for flushes to happen, and a power loss, which shows whether they did.
        lives[0] = replace(lives[0], end="power", length_s=random.uniform(0.2, 0.6), slowness_s=0.000_2, fault=None)
    return Plan(
        seed,
        weather,
        topics,
        [_producer(random) for _ in range(random.randint(1, 3))],
        [_consumer(random) for _ in range(random.randint(1, 2))],
        lives,
        _settings(random),
        random.choice((0.1, 0.5)),
    )


def _coordinators(random: Random, seed: int, scene: str) -> Plan:
    """Groups or transactions, on topics without retention and compaction."""
    is_flushed = random.random() < 0.5
    lives = [_life(random) for _ in range(random.randint(1, 4))]
    apps = age_apps(plan_apps(random), Random(f"{seed}/plan/epochs")) if scene == "transactions" else []
    apps, expiry = expire_ids(apps, Random(f"{seed}/plan/expiry"))
    if apps:
        lives = [
            replace(life, clock_error_ms=random.choice(CLOCK_ERRORS_MS), waits_for_ending=random.random() < 0.5)
            for life in lives
        ]
        if not is_flushed:
            # No power losses: without flushes they may lose halves of transactions, as with Apache Kafka.
            lives = [replace(life, end={"power": "kill", "power crash": "crash"}.get(life.end, life.end)) for life in lives]
    if is_flushed:
        # More power losses: they show whether something was flushed in time.
        lives = [replace(life, end=random.choice((life.end, "power", "power crash"))) for life in lives]
    # Long enough for members to join, and for transactions to run.
    lives = [replace(life, length_s=life.length_s + random.choice((0.0, 0.5, 2.0)) * random.random()) for life in lives]
    if not apps:
        lives = [replace(life, length_s=2 * life.length_s + 0.3) for life in lives]
    configs = {"flush.messages": "1"} if is_flushed else {}
    producer = ProducerPlan(is_idempotent=True, acks=-1, in_flight_max=2, pause_s_max=0.05 if apps else 0.1)
    plan = Plan(
        seed,
        _weather(random),
        [TopicSetup(f"topic{index}", random.randint(1, 3), configs) for index in range(2)],
        [producer] if apps else [],
        [replace(_consumer(random), is_committed=True)] if apps else [],
        lives,
        _settings(random) | coordinator_settings(random, is_flushed) | expiry,
        random.choice((0.5, 1.0)),
        scene,
        _groups(random, seed) if scene == "groups" else [],
        apps,
        plan_version(Random(f"{seed}/plan/version")) if apps else VersionPlan(),
    )
    is_read = any(group.is_reading for group in plan.groups)
    return replace(plan, producers=[producer]) if is_read else plan


def _with_expiry(plan: Plan) -> Plan:
    """In some runs about groups, set the clock forward with every life, so that offsets expire."""
    random = Random(f"{plan.seed}/plan/expiry")
    if not plan.groups or random.random() >= 0.25:
        return plan
    lives = [replace(life, clock_error_ms=index * FAR_OFF_MS) for index, life in enumerate(plan.lives)]
    return replace(plan, lives=lives, groups=with_committer(plan.groups), settings=plan.settings | EXPIRING_OFFSETS)


def _groups(random: Random, seed: int) -> list[GroupPlan]:
    groups = mix_groups(plan_groups(random), Random(f"{seed}/plan/mixed"))
    groups = clean_groups(groups, Random(f"{seed}/plan/cleaners"))
    return let_read(groups, Random(f"{seed}/plan/reading"))


def _weather(random: Random) -> Weather:
    rough = random.random() < 0.4
    return Weather(
        delay_s_max=random.choice((0.000_5, 0.002, 0.02)),
        pieces_chance=random.choice((0.0, 0.3)),
        cut_chance=0.004 if rough else 0.0,
        connect_timeout_s=1.0,
    )


def _settings(random: Random) -> dict[str, str]:
    """Frequent background work, so that short lives have some, and a metadata log with frequent snapshots."""
    if random.random() < 0.3:
        return {}
    interval_ms = str(random.choice((30, 150, 600)))
    settings = {
        "log.initial.task.delay.ms": "10",
        "log.flush.offset.checkpoint.interval.ms": interval_ms,
        "log.flush.start.offset.checkpoint.interval.ms": interval_ms,
        "replica.high.watermark.checkpoint.interval.ms": interval_ms,
        "log.retention.check.interval.ms": interval_ms,
        "log.cleaner.backoff.ms": interval_ms,
        "log.segment.delete.delay.ms": str(random.choice((0, 100))),
    }
    if random.random() < 0.7:
        settings["metadata.log.max.record.bytes.between.snapshots"] = str(random.choice((200, 1000, 4000)))
        settings["metadata.log.segment.ms"] = str(random.choice((50, 400, 604_800_000)))
        settings["metadata.max.retention.bytes"] = str(random.choice((1000, 104_857_600)))
    return settings


def _fault(random: Random) -> DiskFault:
    operation = random.choice(("*", "append", "append", "sync", "rename", "open", "replace"))
    return DiskFault(
        directory=random.choice(DIRECTORIES[1:] * 3 + DIRECTORIES[:1]),
        operation=operation,
        error=random.choice((errno.EIO, errno.ENOSPC)),
        skip=random.randint(0, 10),
        keep_bytes=random.choice((0, 0, 10)) if operation == "append" else 0,
        cut_back_fails=random.random() < 0.5,
    )


def _topic(random: Random, index: int) -> TopicSetup:
    configs: dict[str, str] = {}
    if random.random() < 0.4:
        configs["flush.messages"] = "1"
    elif random.random() < 0.5:
        configs["flush.ms"] = str(random.choice((10, 50)))
    if random.random() < 0.6:
        configs["segment.ms"] = str(random.choice((20, 100, 400)))
    if random.random() < 0.25:
        configs |= {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "50"}
    elif random.random() < 0.2:
        configs |= {"retention.bytes": "5000", "segment.ms": "50"}
    return TopicSetup(f"topic{index}", random.randint(1, 3), configs)


def _producer(random: Random) -> ProducerPlan:
    is_idempotent = random.random() < 0.6
    return ProducerPlan(
        is_idempotent=is_idempotent,
        acks=-1 if is_idempotent else random.choice((0, 1, 1, -1)),
        in_flight_max=random.randint(1, 5) if is_idempotent else 1,
        pause_s_max=random.choice((0.04, 0.15)),
        linger_ms=random.choice((0, 0, 10)),
        compression=random.choice(("none", "none", "lz4", "gzip")),
    )


def _consumer(random: Random) -> ConsumerPlan:
    return ConsumerPlan(
        is_committed=random.random() < 0.5,
        max_wait_ms=random.choice((50, 500)),
        pause_s_max=0.1,
        reset=random.choice(("earliest", "earliest", "latest")),
    )


def _life(random: Random) -> Life:
    end = random.choice(ENDS)
    return Life(
        end=end,
        length_s=random.choice((0.005, 0.05, 0.3, 0.6, 1.3)) * random.random(),
        changes=random.randint(0, random.choice((10, 60))),
        down_s=random.choice((0.0, 0.05, 0.5)) * random.random(),
        slowness_s=random.choice((0.000_2, 0.000_2, 0.002, 0.02)),
        clock_error_ms=random.choice((0, 0, 0, 1000, -1000, FAR_OFF_MS, -FAR_OFF_MS)),
        is_parted=random.random() < 0.15,
        fault=_fault(random) if random.random() < 0.2 else None,
    )
