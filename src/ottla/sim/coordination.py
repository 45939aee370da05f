"""Plans groups and transactions from a seed: their members and programs, and settings with short timeouts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from ottla.coordinator.transactions.transaction import EPOCH_MAX
from ottla.sim.clients.member import HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS

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
