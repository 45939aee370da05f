"""`GroupCommitter` commits offsets to a consumer group, in a thread of its own, so that no query waits for it.

Only the newest offsets of each query are kept. A commit that fails is logged once and tried again, with growing pauses, until
it succeeds or newer offsets replace it. The coordinator refuses commits to a group that has members, and the log says so.

Coordinators forget offsets of a group without members that were not committed again for offsets.retention.minutes (a week).
So all offsets are committed again once a day.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ottla import Admin
from ottla.spark.progress.measures import Offsets, merge_smallest

logger = logging.getLogger("ottla.spark.progress")

PAUSE_S_MIN = 0.5
PAUSE_S_MAX = 30.0
CALL_TIMEOUT_S = 20.0
RENEW_S = 86_400.0
METADATA = "committed by a Spark query"


class GroupCommitter:
    """Commits what queries have read. `failures` counts attempts that failed."""

    def __init__(self, group: str, client: Mapping[str, str], commit: Callable[[Offsets], None] | None = None) -> None:
        self._group = group
        self._client = dict(client)
        self._commit = commit or self._commit_with_admin
        self._admin: Admin | None = None
        self._changed = threading.Condition()
        self._by_query: dict[str, Offsets] = {}
        self._ended: set[str] = set()
        """Queries that will not report again: forgotten once their last offsets are committed."""
        self._committed: Offsets = {}
        self._is_closing = False
        self._last_error: str | None = None
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name=f"ottla-commits-{group}", daemon=True)
        self._thread.start()

    def offer(self, query_id: str, offsets: Offsets) -> None:
        """Take the newest offsets of a query; they replace its earlier ones. Does not wait."""
        with self._changed:
            self._by_query[query_id] = dict(offsets)
            self._ended.discard(query_id)
            self._changed.notify_all()

    def end(self, query_id: str) -> None:
        """Forget a query that has ended, after its last offsets: it must not hold back others that read the same topics."""
        with self._changed:
            self._ended.add(query_id)
            if not self._due():
                self._forget_ended()
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything offered is committed; False if it is not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._due(), timeout_s)

    def close(self, timeout_s: float = CALL_TIMEOUT_S) -> bool:
        """Commit what is left and stop; False, and a log line, if that did not succeed in time."""
        is_done = self.flush(timeout_s)
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        if not is_done:
            logger.error("the offsets of group %s are behind the query's: %s", self._group, self._last_error or "no answer yet")
        return is_done

    def _due(self) -> Offsets:
        wanted: Offsets = {}
        for offsets in self._by_query.values():
            merge_smallest(wanted, offsets)
        return {each: offset for each, offset in wanted.items() if self._committed.get(each) != offset}

    def _forget_ended(self) -> None:
        for query_id in self._ended:
            self._by_query.pop(query_id, None)
        self._ended.clear()

    def _run(self) -> None:
        pause_s, renewal_s = 0.0, time.monotonic() + RENEW_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing or bool(self._due()), max(0.0, renewal_s - time.monotonic()))
                if time.monotonic() >= renewal_s:
                    self._committed.clear()
                    renewal_s = time.monotonic() + RENEW_S
                if pause_s and not self._is_closing:
                    self._changed.wait_for(lambda: self._is_closing, pause_s)
                due = self._due()
                if self._is_closing:
                    break
            if not due:
                continue
            try:
                self._commit(due)
            except Exception as error:  # whatever it is, the query must go on
                pause_s = min(PAUSE_S_MAX, pause_s * 2 or PAUSE_S_MIN)
                self._failed(error, pause_s)
                continue
            pause_s = 0.0
            self._last_error = None
            with self._changed:
                self._committed.update(due)
                if not self._due():
                    self._forget_ended()
                self._changed.notify_all()
        if self._admin is not None:
            self._admin.close()

    def _failed(self, error: Exception, pause_s: float) -> None:
        self.failures += 1
        if str(error) != self._last_error:
            self._last_error = str(error)
            logger.warning("offsets were not committed to group %s, next try in %.1f s: %s", self._group, pause_s, error)

    def _commit_with_admin(self, offsets: Offsets) -> None:
        from ottla import OffsetAndMetadata

        if self._admin is None:
            self._admin = Admin(config=self._client)
        wanted: dict[Any, Any] = {each: OffsetAndMetadata(offset, METADATA) for each, offset in offsets.items()}
        results = self._admin.with_timeout(CALL_TIMEOUT_S).alter_consumer_group_offsets(self._group, wanted)
        results.raise_first()
