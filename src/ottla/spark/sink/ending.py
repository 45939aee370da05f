"""Ending transactions that tasks have left open: those of a decision, and those that nobody will decide about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import ottla
from ottla.client_core.producer.finishing import Finish
from ottla.errors import InvalidTxnStateError, TransactionalIdNotFoundError, UnsupportedVersionError
from ottla.spark.sink.decision import HeldTransaction
from ottla.spark.sink.names import driver_id, query_prefix
from ottla.spark.sink.protocol import Look
from ottla.spark.sink.steps import reached

if TYPE_CHECKING:
    from ottla import Admin, Producer

THREADS_MAX = 16


def look_at(admin: Admin, held: Sequence[HeldTransaction]) -> dict[str, Look | None]:
    """What the coordinators say about transactions; None for an id that they do not know."""
    described = admin.describe_transactions([each.transactional_id for each in held])
    looks: dict[str, Look | None] = {}
    for name, error in described.errors.items():
        if not isinstance(error, TransactionalIdNotFoundError):
            raise error
        looks[name] = None
    for name, found in described.values_found.items():
        looks[name] = Look(found.state, found.producer_id, found.producer_epoch)
    return looks


def keep_all(producer: Producer[Any, Any], held: Sequence[HeldTransaction]) -> tuple[HeldTransaction, ...]:
    """The transactions, which never time out any more, with their new identities. Some stay as they are.

    Those are what the cluster cannot keep (it has no two-phase commit), and what is not open any more: look at it.
    """

    def keep(each: HeldTransaction) -> HeldTransaction:
        try:
            kept = producer.keep_transaction(*each[:3])
        except UnsupportedVersionError:
            return each
        return each if kept is None else HeldTransaction(*kept, each.task, each.rows)

    if not held:
        return ()
    with ThreadPoolExecutor(min(THREADS_MAX, len(held))) as threads:
        return tuple(threads.map(keep, held))


def commit_all(producer: Producer[Any, Any], held: Sequence[HeldTransaction]) -> list[HeldTransaction]:
    """Commit every transaction; returns those that had been aborted before. Raises if the outcome of one is unknown."""

    def commit(each: HeldTransaction) -> bool:
        try:
            result = producer.finish_transaction(*each[:3], commit=True)
        except (InvalidTxnStateError, TransactionalIdNotFoundError):
            return False
        return result in (Finish.DONE_NOW, Finish.DONE_BEFORE)

    if not held:
        return []
    done = [commit(held[0])]
    reached("ending:first")
    if len(held) > 1:
        with ThreadPoolExecutor(min(THREADS_MAX, len(held) - 1)) as threads:
            done += threads.map(commit, held[1:])
    return [each for each, is_done in zip(held, done, strict=True) if not is_done]


def open_transactions(admin: Admin, query: str) -> list[HeldTransaction]:
    """The transactions that a query's tasks have open now. Task and rows are unknown."""
    prefix, driver = query_prefix(query), driver_id(query)
    listed = [each.transactional_id for each in admin.list_transactions(states=["Ongoing"])]
    ours = [name for name in listed if name.startswith(prefix) and name != driver]
    if not ours:
        return []
    described = admin.describe_transactions(ours)
    for error in described.errors.values():
        if not isinstance(error, TransactionalIdNotFoundError):
            raise error
    found = sorted(described.values_found.items())
    return [
        HeldTransaction(name, each.producer_id, each.producer_epoch, -1, 0) for name, each in found if each.state == "Ongoing"
    ]


def idle_ids(admin: Admin, query: str) -> list[str]:
    """The transactional ids of a query's tasks that have been initialised, and have no transaction yet."""
    prefix, driver = query_prefix(query), driver_id(query)
    listed = [each.transactional_id for each in admin.list_transactions(states=["Empty"])]
    return [name for name in listed if name.startswith(prefix) and name != driver]


def fence_idle(client: Mapping[str, str], ids: Sequence[str]) -> None:
    """Initialise ids again: the tasks that have them can open no transaction any more."""
    for each in ids:
        producer: Producer[Any, Any] = ottla.Producer(config={**client, "transactional.id": each})
        try:
            producer.init_transactions()
        finally:
            producer.close(timeout=1)


def abort_all(producer: Producer[Any, Any], held: Sequence[HeldTransaction]) -> None:
    """Abort these transactions, if they are still open. A later transaction with the same id is not touched."""

    def abort(each: HeldTransaction) -> None:
        with suppress(InvalidTxnStateError, TransactionalIdNotFoundError):
            producer.finish_transaction(*each[:3], commit=False)

    if held:
        with ThreadPoolExecutor(min(THREADS_MAX, len(held))) as threads:
            list(threads.map(abort, held))
