"""The audit topic: who changed what. A change is recorded before it is made, and its outcome after.

A record is one JSON object: `id` (the same for both records of a change), `phase` (`asked`, `done` or `failed`), `time`,
`user`, `groups`, `address`, `cluster`, `change` (the path) and `form`, later `outcome`. The key is the user's name. If the
topic cannot be written, nothing is changed. Secrets in forms are not recorded.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.cluster import is_worth_retrying
from ottla.client.once import store_once
from ottla.errors import KafkaError, OttlaError, TopicExistsError
from ottla.ids import TopicPartition
from ottla.records.builder import build_produce_batch

if TYPE_CHECKING:
    from ottla.console.app import Visit
    from ottla.console.clusters import ClusterView

WRITE_S = 5.0
PAUSE_S = 0.1
FIELD_CHARACTERS_MAX = 2_000
SECRETS = ("password", "secret", "hmac", "jaas", "keystore.key", "private")


class Audit:
    """Writes to one topic of one cluster; without a topic it writes nothing."""

    def __init__(self, view: ClusterView, topic: str | None) -> None:
        self._view = view
        self._topic = topic
        self._is_there = False

    async def asked(self, visit: Visit) -> str:
        """A change that is about to be made. Raises if that cannot be recorded."""
        change = str(uuid.uuid4())
        if self._topic is not None:
            await self._write(visit, change, "asked", {"form": shown_form(visit.fields)})
        return change

    async def ended(self, visit: Visit, change: str, outcome: str, *, is_done: bool) -> None:
        """How it went."""
        if self._topic is not None:
            await self._write(visit, change, "done" if is_done else "failed", {"outcome": outcome})

    async def _write(self, visit: Visit, change: str, phase: str, more: Mapping[str, Any]) -> None:
        client = visit.request.client
        record = {
            "id": change,
            "phase": phase,
            "time": int(time.time() * 1000),
            "user": visit.user.name,
            "groups": list(visit.user.groups),
            "address": client.host if client is not None else "",
            "cluster": visit.view.name,
            "change": visit.request.url.path,
            **more,
        }
        assert self._topic is not None
        try:
            async with asyncio.timeout(WRITE_S):
                await self._store(self._topic, visit.user.name.encode(), json.dumps(record).encode())
        except (KafkaError, OttlaError, TimeoutError) as problem:
            what = "nothing was changed" if phase == "asked" else "the change was made, but its outcome was not recorded"
            why = str(problem) or f"no answer within {WRITE_S:g} s"
            raise OttlaError(f"{what}: the audit topic {self._topic} of {self._view.name} cannot be written: {why}") from None

    async def _store(self, topic: str, key: bytes, value: bytes) -> None:
        cluster = self._view.cluster
        if not self._is_there:
            results = await create_topics(cluster, [NewTopic(topic, 1, -1)])
            error = results.errors.get(topic)
            if error is not None and not isinstance(error, TopicExistsError):
                raise error
            self._is_there = True
        while True:
            try:
                found = await cluster.topic(topic)
                batch = build_produce_batch([(int(time.time() * 1000), key, value, ())])
                await store_once(cluster, found.partitions[0].leader_id, TopicPartition(topic, 0), found.topic_id, batch)
                return
            except KafkaError as error:  # a new topic has no leader yet; a leader may move
                if not is_worth_retrying(error):
                    raise
                await asyncio.sleep(PAUSE_S)


def shown_form(fields: list[tuple[str, str]]) -> list[list[str]]:
    """A form's fields without secrets, cut where they are long."""
    sets_secret = any(name == "setting" and _is_secret(value) for name, value in fields)
    return [
        [name, "(hidden)" if _is_secret(name) or (sets_secret and name == "value") else value[:FIELD_CHARACTERS_MAX]]
        for name, value in fields
        if name != "csrf"
    ]


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in SECRETS)
