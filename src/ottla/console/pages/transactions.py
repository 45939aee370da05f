"""Transactions: transactional ids with what they have open, transactions that hang, and how both are ended."""

from __future__ import annotations

import time
from urllib.parse import quote

from ottla.client.admin.transactions import TransactionListing, describe_transactions, list_transactions
from ottla.client.hanging_transactions import abort_at, find_hanging_transactions, terminate
from ottla.console.app import Data, Refused, Visit, change, page
from ottla.console.clusters import soon
from ottla.console.pages.fields import confirmed, whole_number
from ottla.console.pages.tables import tabulate
from ottla.errors import KafkaError
from ottla.ids import TopicPartition

OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
HANGING_MINUTES = 15
LOOK_S = 5.0
CHANGE_S = 30.0
MINUTE_MS = 60_000


@page("/transactions", "transactions.html")
async def transactions(visit: Visit) -> Data:
    """Transactional ids; `open=1`: those with an open transaction. Only those on this page are described."""
    cluster = visit.view.cluster
    only_open = visit.query.get("open") == "1"
    found = await soon(list_transactions(cluster, states=OPEN if only_open else ()))
    table = tabulate(
        visit,
        found,
        lambda each: each.transactional_id,
        {
            "name": lambda each: each.transactional_id,
            "state": lambda each: each.state,
            "producer": lambda each: each.producer_id,
        },
        "name",
    )
    return {
        "title": "Transactions",
        "table": table._replace(rows=[])._asdict(),
        "only_open": only_open,
        "rows": await _described(visit, table.rows),
    }


async def _described(visit: Visit, rows: list[TransactionListing]) -> list[Data]:
    names = [each.transactional_id for each in rows if each.state in OPEN]
    results = await soon(describe_transactions(visit.view.cluster, names)) if names else None
    known = {} if results is None else results.values_found
    if results is not None:
        _ = results.errors  # an id that is gone by now is shown as it was listed
    now_ms = int(time.time() * 1000)
    shown = []
    for each in rows:
        about = known.get(each.transactional_id)
        start = None if about is None else about.start
        shown.append(
            {
                "name": each.transactional_id,
                "state": each.state,
                "producer_id": each.producer_id,
                "coordinator": each.coordinator,
                "start": start,
                "age_s": None if start is None else max(0, now_ms - start) / 1000,
                "timeout_s": None if about is None else about.timeout_ms / 1000,
                "partitions": 0 if about is None else len(about.partitions),
            }
        )
    return shown


@page("/transactions/{name}", "transaction.html")
async def transaction(visit: Visit) -> Data:
    """One transactional id."""
    name = visit.segments["name"]
    results = await soon(describe_transactions(visit.view.cluster, [name]))
    if name in results.errors:
        raise Refused(404, str(results.errors[name]))
    found = results[name]
    now_ms = int(time.time() * 1000)
    return {
        "title": name,
        "name": name,
        "state": found.state,
        "is_open": found.state in OPEN,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "coordinator": found.coordinator,
        "timeout_s": found.timeout_ms / 1000,
        "start": found.start,
        "age_s": None if found.start is None else max(0, now_ms - found.start) / 1000,
        "partitions": [{"topic": each.topic, "partition": each.partition} for each in found.partitions],
    }


@change("/transactions/{name}/abort")
async def abort(visit: Visit) -> tuple[str, str]:
    """Abort the open transaction of an id and fence its producer; the id must be typed as well."""
    name = visit.segments["name"]
    confirmed(visit, name, "the transactional id")
    await soon(terminate(visit.view.cluster, name), CHANGE_S)
    return f"/transactions/{quote(name, safe='')}", f"The transaction of {name} was aborted, and its producer fenced."


@page("/hanging-transactions", "hanging.html")
async def hanging(visit: Visit) -> Data:
    """Open transactions that no coordinator will end. Looks at the partitions of one topic, or of all."""
    topic = visit.query.get("topic", "").strip()
    minutes = visit.number("minutes", HANGING_MINUTES)
    now_ms = int(time.time() * 1000)
    looked = "topic" in visit.query
    rows: list[Data] = []
    errors: dict[TopicPartition, KafkaError] = {}
    if looked:
        await soon(visit.view.cluster.metadata([]))  # a cluster that is gone is known sooner than a long search
        look = find_hanging_transactions(visit.view.cluster, topic or None, timeout_ms=minutes * MINUTE_MS, now_ms=now_ms)
        found, errors = await soon(look, LOOK_S)
        rows = [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "producer_id": each.producer.producer_id,
                "producer_epoch": each.producer.producer_epoch,
                "start_offset": each.producer.transaction_start_offset,
                "last_ms": each.producer.last_timestamp,
                "age_s": max(0, now_ms - each.producer.last_timestamp) / 1000,
            }
            for each in found
        ]
    return {
        "title": "Hanging transactions",
        "topic": topic,
        "minutes": minutes,
        "looked": looked,
        "rows": rows,
        "errors": [f"{each}: {error}" for each, error in list(errors.items())[:20]],
    }


@change("/hanging-transactions/abort")
async def abort_hanging(visit: Visit) -> tuple[str, str]:
    """Write an abort marker to one partition."""
    form = visit.form
    partition = TopicPartition(form.get("topic", ""), whole_number(form.get("partition", ""), "the partition"))
    start = whole_number(form.get("start_offset", ""), "the first offset of the transaction")
    await soon(abort_at(visit.view.cluster, partition, start), CHANGE_S)
    path = f"/hanging-transactions?topic={quote(partition.topic, safe='')}"
    return path, f"The transaction at offset {start} of {partition} was aborted."
