"""Combinations of client settings: the impossible ones are refused, the others are made to fit, with a warning, as Kafka does.

Each check gets the values by Kafka's names and the names that were given. It changes values in place and adds warnings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.config.values import BY_DURATION, InvalidConfig, parse_iso_duration_ms
from ottla.errors.texts import listed

IDEMPOTENT_IN_FLIGHT_MAX = 5
"""How many batches of a producer the broker remembers, for each partition."""
INT_MAX = 2**31 - 1
KAFKA_BATCH_SIZE = 16_384
"""Kafka's default of batch.size."""

_NOT_WITH_CONSUMER_PROTOCOL = ("partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms")


class Draft(NamedTuple):
    """Settings that are being checked."""

    values: dict[str, Any]
    given: frozenset[str]
    notices: list[str]


def check_common(draft: Draft) -> None:
    """What holds for every kind of client."""
    values, given = draft.values, draft.given
    if "reconnect.backoff.ms" in given and "reconnect.backoff.max.ms" not in given:
        if values["reconnect.backoff.max.ms"] != values["reconnect.backoff.ms"]:
            draft.notices.append(
                f"reconnect.backoff.max.ms is set to reconnect.backoff.ms={values['reconnect.backoff.ms']}, as Kafka does when "
                "only the latter is given: the backoff does not grow. Give both to let it grow"
            )
        values["reconnect.backoff.max.ms"] = values["reconnect.backoff.ms"]
    for least, most in (
        ("retry.backoff.ms", "retry.backoff.max.ms"),
        ("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms"),
    ):
        if values[least] > values[most]:
            draft.notices.append(
                f"{least}={values[least]} is more than {most}={values[most]}: {values[most]} ms is used always, without growth"
            )


def check_producer(draft: Draft) -> None:
    """Idempotence, transactions, timeouts and memory of a producer."""
    values = draft.values
    _require_servers(draft, "Producer")
    _check_idempotence(draft)
    if values["transactional.id"] is not None and not values["enable.idempotence"]:
        raise InvalidConfig(
            "transactional.id",
            "transactional.id needs enable.idempotence=true: remove enable.idempotence, acks and retries, whose defaults allow "
            "transactions",
        )
    if values["transaction.two.phase.commit.enable"] and "transaction.timeout.ms" in draft.given:
        raise InvalidConfig(
            "transaction.timeout.ms",
            "transaction.timeout.ms is given with transaction.two.phase.commit.enable=true, under which transactions never "
            "time out: remove one of them",
        )
    _check_delivery_timeout(draft)
    values["sticky.batch.size"] = values["batch.size"]
    if "batch.size" not in draft.given:
        # Ottla's default is larger than Kafka's. Records without a key are spread as Kafka's are all the same, and a small
        # buffer.memory is no error.
        values["sticky.batch.size"] = KAFKA_BATCH_SIZE
        values["batch.size"] = min(values["batch.size"], values["buffer.memory"])
    if values["batch.size"] > values["buffer.memory"]:
        raise InvalidConfig(
            "batch.size",
            f"batch.size={values['batch.size']} is more than buffer.memory={values['buffer.memory']}: no batch would fit; "
            "lower the first or raise the second",
        )


def _check_idempotence(draft: Draft) -> None:
    values, given = draft.values, draft.given
    if not values["enable.idempotence"]:
        return
    is_explicit = "enable.idempotence" in given
    in_flight = values["max.in.flight.requests.per.connection"]
    broken = []
    if values["retries"] == 0:
        broken.append(("retries", "retries=0", "greater than 0"))
    if values["acks"] != -1:
        broken.append(("acks", f"acks={values['acks']}", "all"))
    if is_explicit and broken:
        name, shown, needed = broken[0]
        raise InvalidConfig(
            name, f"{shown} contradicts enable.idempotence=true, for which {name} must be {needed}: change one of them"
        )
    if in_flight > IDEMPOTENT_IN_FLIGHT_MAX:  # refused even if idempotence is only the default, as Kafka 4 does
        raise InvalidConfig(
            "max.in.flight.requests.per.connection",
            f"max.in.flight.requests.per.connection={in_flight} contradicts enable.idempotence=true (the default), for which "
            f"it must be at most {IDEMPOTENT_IN_FLIGHT_MAX}: lower it, or set enable.idempotence=false",
        )
    if broken:
        values["enable.idempotence"] = False
        draft.notices.append(
            f"idempotence is off because of {listed([shown for _, shown, _ in broken])}: retries may write records twice or "
            "out of order. Remove the setting, or set enable.idempotence=false to say that this is meant"
        )


def _check_delivery_timeout(draft: Draft) -> None:
    values = draft.values
    linger_ms, request_ms = values["linger.ms"], values["request.timeout.ms"]
    least = min(min(linger_ms, INT_MAX) + request_ms, INT_MAX)
    if values["delivery.timeout.ms"] >= least:
        return
    if "delivery.timeout.ms" in draft.given:
        raise InvalidConfig(
            "delivery.timeout.ms",
            f"delivery.timeout.ms={values['delivery.timeout.ms']} is less than linger.ms={linger_ms} + request.timeout.ms="
            f"{request_ms}: a record would expire before one request could fail; raise the first or lower the others",
        )
    values["delivery.timeout.ms"] = least
    draft.notices.append(
        f"delivery.timeout.ms is raised to {least}, because it must be at least linger.ms={linger_ms} + request.timeout.ms="
        f"{request_ms}: give it to choose another value"
    )


def check_consumer(draft: Draft) -> None:
    """The group, auto commit and offset reset of a consumer."""
    values, given = draft.values, draft.given
    _require_servers(draft, "Consumer")
    group_id = values["group.id"]
    if group_id is not None and not group_id.strip():
        raise InvalidConfig("group.id", "group.id is empty: give the name of a group, or remove it to use no group")
    if group_id is None:
        if "enable.auto.commit" in given and values["enable.auto.commit"]:
            raise InvalidConfig(
                "enable.auto.commit",
                "enable.auto.commit=true without group.id: offsets are committed for a group; give group.id, or remove it",
            )
        values["enable.auto.commit"] = False
    if values["group.protocol"] == "consumer":
        refused = [name for name in _NOT_WITH_CONSUMER_PROTOCOL if name in given]
        if refused:
            raise InvalidConfig(
                refused[0],
                f"{listed(refused)} cannot be set with group.protocol=consumer, under which the broker decides: remove "
                "it here, and set group.remote.assignor, or the group's own settings on the broker",
            )
    else:
        if "group.remote.assignor" in given:
            raise InvalidConfig(
                "group.remote.assignor",
                "group.remote.assignor is for group.protocol=consumer, but group.protocol is classic: set "
                "group.protocol=consumer, or use partition.assignment.strategy",
            )
        _check_session(draft)
    reset = values["auto.offset.reset"]
    values["auto.offset.reset.duration.ms"] = None
    if reset.startswith(BY_DURATION):
        values["auto.offset.reset.duration.ms"] = parse_iso_duration_ms(reset.removeprefix(BY_DURATION))
        values["auto.offset.reset"] = "by_duration"
    if values["fetch.max.wait.ms"] >= values["request.timeout.ms"]:
        draft.notices.append(
            f"fetch.max.wait.ms={values['fetch.max.wait.ms']} is not less than "
            f"request.timeout.ms={values['request.timeout.ms']}: a fetch times out before the broker answers that there is "
            "nothing new. Lower the first or raise the second"
        )


def _check_session(draft: Draft) -> None:
    heartbeat_ms, session_ms = draft.values["heartbeat.interval.ms"], draft.values["session.timeout.ms"]
    for name in ("heartbeat.interval.ms", "session.timeout.ms"):
        if draft.values[name] <= 0:
            raise InvalidConfig(name, f"{name}={draft.values[name]}: must be at least 1")
    if heartbeat_ms >= session_ms:
        raise InvalidConfig(
            "heartbeat.interval.ms",
            f"heartbeat.interval.ms={heartbeat_ms} must be less than session.timeout.ms={session_ms}: the member would be "
            "evicted between two heartbeats. A third of the session timeout is a good value",
        )


def check_admin(draft: Draft) -> None:
    """The addresses and timeouts of an admin client."""
    values = draft.values
    if values["bootstrap.servers"] and values["bootstrap.controllers"]:
        raise InvalidConfig(
            "bootstrap.controllers",
            "bootstrap.servers and bootstrap.controllers are both given: give the addresses of one kind",
        )
    if not values["bootstrap.controllers"]:
        _require_servers(draft, "Admin")
    api_ms, request_ms = values["default.api.timeout.ms"], values["request.timeout.ms"]
    if api_ms >= request_ms:
        return
    if "default.api.timeout.ms" in draft.given:
        raise InvalidConfig(
            "default.api.timeout.ms",
            f"default.api.timeout.ms={api_ms} must be at least request.timeout.ms={request_ms}: raise the first or lower the "
            "second",
        )
    values["default.api.timeout.ms"] = request_ms
    draft.notices.append(
        f"default.api.timeout.ms is raised to request.timeout.ms={request_ms}: give it to choose another value"
    )


def _require_servers(draft: Draft, face: str) -> None:
    if not draft.values["bootstrap.servers"]:
        raise InvalidConfig(
            "bootstrap.servers", f'bootstrap.servers is missing: give the address of a broker, such as {face}("localhost:9092")'
        )
