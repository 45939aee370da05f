"""The Spark session of `ottla sql`, started when the first statement needs it, and the log file that it writes."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.waiting import with_cluster_awaited
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.cluster import Cluster
from ottla.errors import OttlaError
from ottla.spark.class_archive import make_in_background
from ottla.spark.java import find_java
from ottla.spark.places import is_local
from ottla.spark.session import LOCAL, active_session, local_session, require_pyspark
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.settings import Settings
from ottla.spark.sql.statements import Statement
from ottla.spark.sql.statements import is_local as is_local_statement
from ottla.spark.warm import Wanted, attach, is_there, minutes_idle

if TYPE_CHECKING:
    from ottla.spark.warm import Attached

MESSAGE = "starting Spark…"
ENDS = "`ottla sql --stop` ends it, --no-warm does not begin it"
SETTINGS = {
    # Times are UTC in all output of the verbs, so functions of dates and times must mean UTC too.
    "spark.sql.session.timeZone": "UTC",
}


def log_path(environment: Mapping[str, str] | None = None) -> Path:
    """Where Spark's own messages and the traces of errors go."""
    variables = os.environ if environment is None else environment
    base = Path(variables.get("XDG_STATE_HOME") or Path(variables.get("HOME", "~")).expanduser() / ".local" / "state")
    return base / "ottla" / "sql.log"


class Session:
    """Starts Spark once. A session that the process has already is used and not stopped."""

    def __init__(
        self, *, master: str | None, remote: str | None, log: Path, is_brief: bool = False, is_warm: bool = False
    ) -> None:
        """`is_warm` takes the Spark that stays, if it can run the statements, and starts it if there is none."""
        self._is_brief = is_brief
        self._is_warm = is_warm and is_brief and remote is None
        self._warm: Attached | None = None
        self._master = master
        self._remote = remote
        self.log = log
        self._mine: Any = None

    @property
    def is_remote(self) -> bool:
        """Whether a server runs the statements, which may be of another version."""
        return self._remote is not None

    def check(self) -> None:
        """Raise what prevents Spark from starting and can be known before: no PySpark, no Java."""
        require_pyspark()
        if self._remote is None and active_session() is None and not (self._is_warm and is_there()):
            find_java()

    def start(self, settings: Settings) -> Any:
        """The session. On a terminal, a line says that it is being started."""
        require_pyspark()
        found = active_session()
        if found is not None:
            return found
        shows = sys.stderr.isatty()
        if shows:
            sys.stderr.write(MESSAGE)
            sys.stderr.flush()
        self._begin_log()
        # A Spark Connect server has a warehouse and a log of its own, which its clients cannot change.
        own = (
            {} if self._remote else {"spark.sql.warehouse.dir": str(self.log.parent / "warehouse"), "spark.log.level": "ERROR"}
        )
        configuration = own | SETTINGS | settings.spark
        try:
            if self._is_warm and not settings.spark and (found := self._attach(configuration)) is not None:
                return found
            self._mine = local_session(
                "ottla sql",
                master=self._master,
                remote=self._remote,
                configuration=configuration,
                log_file=self.log,
                is_brief=self._is_brief,
            )
        finally:
            if shows:
                sys.stderr.write("\r" + " " * len(MESSAGE) + "\r")
                sys.stderr.flush()
        self._prepare(self._mine)
        return self._mine

    def allow(self, statements: Sequence[Statement]) -> None:
        """The Spark that stays runs only statements that leave nothing behind in it, and need no settings of its own."""
        self._is_warm &= all(map(is_local_statement, statements)) and is_local(self._master or LOCAL)

    def _attach(self, configuration: dict[str, str]) -> Any:
        idle_s = 60 * minutes_idle()
        self._warm = attach(Wanted(self._master, configuration, str(self.log), idle_s))
        if self._warm is None:
            return None
        self._prepare(self._warm.spark)
        return self._warm.spark

    def is_lost(self, error: Exception) -> bool:
        """Whether `error` came because the Spark that stays has ended. From then on, the call starts its own."""
        if self._warm is None:
            return False
        from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # it comes with PySpark

        is_of_link = isinstance(error, ConnectionError | Py4JError) and not isinstance(error, Py4JJavaError)
        if not is_of_link or not self._warm.is_lost():
            return False
        self._warm.close()
        self._warm, self._is_warm = None, False
        return True

    def _prepare(self, spark: Any) -> None:
        from ottla.spark.datasource import OttlaDataSource

        # PySpark prints each error of a query as a line of JSON on standard error, beside raising it.
        logging.getLogger("SQLQueryContextLogger").disabled = True
        # Spark finds the source by itself, unless another package's source cannot be imported: then it finds none.
        spark.dataSource.register(OttlaDataSource)
        if threading.current_thread() is threading.main_thread():
            # PySpark's handler calls Spark from within the signal, which fails if a call is under way.
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _begin_log(self) -> None:
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self.log.write_bytes(b"")
        except OSError as error:
            raise SqlError(f"Spark's log {self.log} cannot be written: {error.strerror}; set XDG_STATE_HOME") from None

    def keep_trace(self, error: BaseException, sql: str) -> None:
        """Append the whole of an error to the log file."""
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(f"\n{sql}\n{''.join(traceback.format_exception(error))}\n")
        except OSError:
            pass  # the sentence is shown in any case

    def stop(self) -> None:
        """Stop Spark, if this has started it. The Spark that stays is left to the next call."""
        if self._warm is not None:
            self._warm.close()
            if self._warm.is_new and sys.stderr.isatty():
                sys.stderr.write(f"(Spark stays ready for {minutes_idle():g} minutes, with some 0.6 GB: {ENDS})\n")
            self._warm = None
        if self._mine is not None:
            self._mine.stop()
            self._mine = None
            if not self.is_remote:
                self._prepare_next()

    def _prepare_next(self) -> None:
        """Let the next start be faster. Nobody waits for it."""
        try:
            is_made = make_in_background(find_java())
        except OttlaError:
            return
        if is_made and sys.stderr.isatty():
            sys.stderr.write("(a process in the background prepares faster starts of Spark, once)\n")


class TopicsOfCluster:
    """The topics of the cluster that the command was pointed at. Brokers that are away are waited for, up to `wait_s`."""

    def __init__(self, settings: ClientSettings, wait_s: float = 0) -> None:
        self._settings = settings
        self._wait_s = wait_s

    def topics(self) -> dict[str, int]:
        """The topics and how many partitions they have."""
        found = with_cluster_awaited(self._settings, list_topics, self._wait_s)
        return {name: topic.partitions for name, topic in found.items()}

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic with the broker's default replication factor."""

        async def create(cluster: Cluster) -> None:
            result = (await create_topics(cluster, [NewTopic(name, partitions)]))[name]
            del result  # raises its error

        with_cluster(self._settings, create)
