"""The options of the sink, checked and typed. Names and meanings are those of Spark's own Kafka sink, and a few of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ottla.spark.errors import SparkOptionError
from ottla.spark.options import Options
from ottla.spark.registry.options import NO_REGISTRY, RegistryOptions, registry_options
from ottla.spark.registry.options import SINK_NAMES as REGISTRY_NAMES

NAMES = ("topic", "includeHeaders", "exactlyOnce", "decisionsTopic", "twoPhaseCommit", *REGISTRY_NAMES)
DECISIONS_TOPIC = "__ottla_sink_decisions"
TRANSACTION_TIMEOUT_MS = 900_000
"""The most that brokers allow by default (transaction.max.timeout.ms). A batch, and the restart of a driver that dies between
its decision and the commits, must fit into it."""
TASK_LINGER_MS = 200
"""A task's rows count when it has flushed them, so nobody waits for a batch that lingers until it is full."""
REFUSED = {
    "key.serializer": "keys are written as they are: make them string or binary before, or use key.format",
    "value.serializer": "values are written as they are: make them string or binary before, or use value.format",
    "transactional.id": "the sink makes its own; use the option exactlyOnce",
    "transaction.two.phase.commit.enable": "use the option twoPhaseCommit",
}
REFUSED_EXACTLY_ONCE = {"enable.idempotence": "true", "acks": "all"}


class TwoPhase(Enum):
    """When transactions lose their timeout, with brokers that serve two-phase commit (KIP-939). The option twoPhaseCommit."""

    AUTO = "auto"
    """The driver takes it away just before it decides, if brokers can: what dies before that still times out."""
    TRUE = "true"
    """Tasks open their transactions without one. Brokers that cannot do that are refused."""
    FALSE = "false"


@dataclass(frozen=True)
class SinkOptions:
    """What a writer was asked for."""

    client: dict[str, str]
    """Settings of the producer, by Kafka's names."""
    topic: str | None = None
    """The topic of all rows; without it, the column `topic` says it."""
    is_exactly_once: bool = False
    decisions_topic: str = DECISIONS_TOPIC
    checkpoint: str | None = None
    """The query's checkpoint folder, if the option said it."""
    two_phase: TwoPhase = TwoPhase.AUTO
    registry: RegistryOptions = NO_REGISTRY

    @property
    def client_without_transactions(self) -> dict[str, str]:
        """Settings for a producer that only ends transactions of others."""
        return {name: value for name, value in self.client.items() if name != "transaction.timeout.ms"}

    @property
    def task_client(self) -> dict[str, str]:
        """Settings for the producers of tasks, without their transactional ids."""
        settings = dict(self.client)
        if "delivery.timeout.ms" not in settings:  # which must not be less than linger.ms + request.timeout.ms
            settings.setdefault("linger.ms", str(TASK_LINGER_MS))
        if self.two_phase is TwoPhase.TRUE:
            settings.pop("transaction.timeout.ms", None)
            settings["transaction.two.phase.commit.enable"] = "true"
        return settings


def sink_options(given: Mapping[str, str], *, is_streaming: bool) -> SinkOptions:
    """The options, or a `SparkOptionError` that names the one to change."""
    options = Options(given, NAMES, "sink")
    client = dict(options.kafka)
    if not client.get("bootstrap.servers"):
        raise SparkOptionError("kafka.bootstrap.servers is missing: give the address of a broker, such as localhost:9092")
    for name, reason in REFUSED.items():
        if name in client:
            raise SparkOptionError(f"kafka.{name} cannot be set: {reason}")
    is_exactly_once = options.boolean("exactlyOnce", False)
    if not is_exactly_once:
        for name in options.given("decisionsTopic", "twoPhaseCommit"):
            raise SparkOptionError(f"{name} is only used with exactlyOnce=true: set that too, or leave it out")
        return SinkOptions(client, options.get("topic"), registry=registry_options(options))
    for name, needed in REFUSED_EXACTLY_ONCE.items():
        if client.get(name, needed) not in (needed, "-1" if name == "acks" else needed):
            raise SparkOptionError(f"kafka.{name}={client[name]} cannot be used with exactlyOnce=true: it must be {needed}")
    two_phase = _two_phase(options)
    if two_phase is TwoPhase.TRUE and "transaction.timeout.ms" in client:
        raise SparkOptionError(
            "kafka.transaction.timeout.ms cannot be used with twoPhaseCommit=true, under which transactions never time out: "
            "remove one of them"
        )
    client.setdefault("transaction.timeout.ms", str(TRANSACTION_TIMEOUT_MS))
    return SinkOptions(
        client,
        options.get("topic"),
        is_exactly_once=True,
        decisions_topic=options.get("decisionsTopic") or DECISIONS_TOPIC,
        checkpoint=given.get("checkpointLocation"),
        two_phase=two_phase,
        registry=registry_options(options),
    )


def _two_phase(options: Options) -> TwoPhase:
    given = (options.get("twoPhaseCommit") or TwoPhase.AUTO.value).lower()
    try:
        return TwoPhase(given)
    except ValueError:
        raise SparkOptionError(f"twoPhaseCommit is {given!r}: it must be auto, true or false") from None
