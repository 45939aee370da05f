"""Produce, for topics whose schema ids are checked: records that name no schema, or one of another subject, are refused.

As Confluent Server's `confluent.value.schema.validation`: what records say they were written with is compared with what the
registry has, the payload is not looked at. A null key or value passes. A batch is refused as a whole, as every batch is; its
records at fault are named one by one. The batch has passed all other checks before.

While the registry is asked, the request waits in the scheduler and no other of its connection is handled, so that the order of
each partition is kept. If the registry does not answer, batches with marks that are not known yet are refused with
NOT_ENOUGH_REPLICAS: not what it is, but all producers try again then, and know that nothing was appended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.requests.scheduler import SMALL_CALL_BYTES
from ottla.broker.requests.schema_subjects import Registered, SchemaSubjects, subjects_of
from ottla.env import Await, OffLoop, Steps
from ottla.env.schema_registry import RegistryAddress
from ottla.errors import CorruptRecords, KafkaError, drop_frames
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.records.effort import ON_LOOP, UNLIMITED, TooExpensive
from ottla.records.produced.schema_ids import UNMARKED, Mark, describe_mark, read_marks
from ottla.records.produced.validate import ERRORS_NAMED_MAX, expanded_bytes_max, validate_produced

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.services import Services
    from ottla.config.topic import LogConfig
    from ottla.records.produced.validate import ValidBatch

READ_ON_LOOP_BYTES = 16 * 1024
"""Larger batches, and compressed ones, are read in a worker thread."""
ASKED_IN_A_ROUND = 64
"""A batch with more marks that are not known has its first ones asked about first: one that is refused spares the others."""
URL_SETTING = "confluent.schema.registry.url"

Marks = Mapping[bool, list[Mark | None]]


def check_schemas(services: Services, partition: Partition, records: memoryview, version: int) -> Steps[ValidBatch]:
    """Check a batch in every way but for its producer's state; returns it as `Partition.append` takes it."""
    config = partition.log.config
    try:
        valid = validate_produced(
            records,
            config,
            now_ms=partition.log.clock.now_ms(),
            partition=partition.log.name,
            request_version=version,
            effort=ON_LOOP,
            inspection=partition.log.options.inspection,
        )
    except TooExpensive as stopped:
        drop_frames(stopped)
        valid = yield from partition.check_off_loop(records, version)
    sides = [side for side in (True, False) if _is_checked(config, side)]
    read = partial(_read, valid, sides, config, partition.log.name)
    if valid.view.is_compressed or valid.view.size > READ_ON_LOOP_BYTES:
        marks: Marks = yield OffLoop(read, UNLIMITED if valid.view.size > SMALL_CALL_BYTES // 8 else SMALL_CALL_BYTES)
    else:
        marks = read()
    named = [(mark, side) for side in sides for mark in set(marks[side]) if mark is not None]
    check = _Check(services, partition.topic, config)
    while opened := [mark for mark, side in named if check.is_open(mark, side)][:ASKED_IN_A_ROUND]:
        if check.subjects.failure is None:
            yield Await(partial(check.subjects.ask, opened))
        if check.subjects.failure is not None and any(check.is_open(mark, side) for mark, side in named):
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"the {describe_mark(opened[0])} of records for {partition.name} cannot be checked now: "
                f"{check.subjects.failure}. Nothing is appended; it may be tried again",
            )
        if any(check.is_refused(mark, side) for mark, side in named):
            break
    if refused := {(mark, side) for mark, side in named if check.is_refused(mark, side)}:
        raise _refusal(check, marks, refused, partition)
    return valid


def _is_checked(config: LogConfig, is_key: bool) -> bool:
    return config.confluent_key_schema_validation if is_key else config.confluent_value_schema_validation


def _read(valid: ValidBatch, sides: list[bool], config: LogConfig, partition: str) -> Marks:
    try:
        return read_marks(valid.view, sides, expanded_bytes_max(config))
    except CorruptRecords as damage:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a batch for {partition} cannot be read: {damage}") from None


class _Check:
    """What decides about the marks in one batch."""

    def __init__(self, services: Services, topic: str, config: LogConfig) -> None:
        self.topic = topic
        self._strategies = {
            True: config.confluent_key_subject_name_strategy,
            False: config.confluent_value_subject_name_strategy,
        }
        self.subjects = _subjects(services, topic)
        self._since_s = asyncio.get_running_loop().time()

    def is_open(self, mark: Mark, is_key: bool) -> bool:
        """Whether the registry must be asked before it can be said whether the topic takes the mark."""
        if mark == UNMARKED:
            return False
        known = self.subjects.known(mark)
        return known is None or (known.asked_s < self._since_s and not self._allows(known, is_key))

    def is_refused(self, mark: Mark, is_key: bool) -> bool:
        """Whether it is known that the topic does not take the mark. One that was not asked about is not refused."""
        if mark == UNMARKED:
            return True
        known = self.subjects.known(mark)
        return known is not None and known.asked_s >= self._since_s and not self._allows(known, is_key)

    def _allows(self, known: Registered, is_key: bool) -> bool:
        return known.allowed_in(self.topic, self._strategies[is_key], is_key)

    def reason(self, mark: Mark, is_key: bool) -> str:
        """Why the topic does not take the mark."""
        what = "key" if is_key else "value"
        if mark == UNMARKED:
            return f"its {what} does not begin with a schema id: write it with a serializer of a schema registry"
        known = self.subjects.known(mark) or Registered(frozenset(), (), 0.0)
        if not known.subjects:
            return f"its {what} has {describe_mark(mark)}, which the schema registry does not know"
        wanted = subjects_of(self.topic, self._strategies[is_key], is_key, known.names) or [
            "the name of its record, which it lacks"
        ]
        where = sorted(known.subjects)
        return (
            f"its {what} has {describe_mark(mark)}, which is registered as {', '.join(where[:3])}"
            f"{f' and {len(where) - 3} more' if len(where) > 3 else ''}, and not as {' or '.join(wanted[:3])}"
        )


def _subjects(services: Services, topic: str) -> SchemaSubjects:
    """The node's knowledge of its registry, which is new when the address of that has changed."""
    settings = services.settings.current
    urls = settings.schema_registry_urls
    source = services.world.schema_registries
    if not urls or source is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"the topic {topic} has the schema ids of its records checked, and this broker has no schema registry to ask: set "
            f"{URL_SETTING}, or turn off confluent.key.schema.validation and confluent.value.schema.validation of the topic",
        )
    address = RegistryAddress(urls, settings.confluent_basic_auth_user_info)
    subjects = services.schema_subjects
    if subjects is None or subjects.address != address:
        if subjects is not None:
            subjects.close()
        subjects = services.schema_subjects = SchemaSubjects(source, address)
    return subjects


def _refusal(check: _Check, marks: Marks, refused: Collection[tuple[Mark, bool]], partition: Partition) -> KafkaError:
    """The error that names the records at fault."""
    errors: list[tuple[int, str]] = []
    sides = sorted(marks, reverse=True)
    count = len(marks[sides[0]])
    for index in range(count):
        for is_key in sides:
            mark = marks[is_key][index]
            if mark is not None and (mark, is_key) in refused:
                errors.append((index, check.reason(mark, is_key)))
                break  # the value is looked at when the key is right
        if len(errors) >= ERRORS_NAMED_MAX:
            break
    more = " or more" if len(errors) >= ERRORS_NAMED_MAX else ""
    return KafkaError(
        ErrorCode.INVALID_RECORD,
        f"{counted(len(errors), 'record')}{more} of {count} for {partition.name} cannot be taken: the topic checks schema ids. "
        f"The first, number {errors[0][0]}: {errors[0][1]}",
        tuple(errors),
    )
