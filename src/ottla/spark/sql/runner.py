"""`Runner`: runs statements one by one. Spark is started by the first statement that needs it.

`frames` and PySpark are imported by the functions that need them: statements without Spark answer before PySpark is loaded.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from ottla.errors.texts import counted
from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.checks import (
    CREATE_AS_IN_SHELL,
    INSERT_IN_SHELL,
    Resolved,
    analysis_error,
    check_topic,
    find_references,
    resolve,
    target_of,
)
from ottla.spark.sql.declarations import Declaration, declaration_of, partitions_wanted, undeclared
from ottla.spark.sql.errors import PlacedSqlError, SqlError
from ottla.spark.sql.interrupts import Interrupted, activate, cancel_group, in_job_group, run_interruptibly
from ottla.spark.sql.lexer import Cut
from ottla.spark.sql.screen import Screen, declaration_rows, described_rows, query_rows, setting_rows, shown_columns, topic_rows
from ottla.spark.sql.settings import RESET, Settings
from ottla.spark.sql.statements import (
    TABLE,
    Column,
    Create,
    Describe,
    Drop,
    Insert,
    Passed,
    Print,
    Query,
    Select,
    Set,
    Show,
    Statement,
    Terminate,
    Unset,
    Window,
)

OBSERVED = "ottla_bad_"


class ClusterTopics(Protocol):
    """What statements ask the cluster for."""

    def topics(self) -> dict[str, int]:
        """The topics and how many partitions they have."""

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic."""


class PlannedTopics:
    """A cluster with the topics that statements will have made. It makes none."""

    def __init__(self, cluster: ClusterTopics) -> None:
        self._found = cluster.topics()

    def topics(self) -> dict[str, int]:
        """The topics that are there, and those to be made."""
        return self._found

    def create_topic(self, name: str, partitions: int) -> None:
        """Remember that there will be a topic."""
        self._found[name] = partitions


class Runner:
    """Runs statements against one cluster."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        settings: Settings,
        cluster: ClusterTopics,
        screen: Screen,
        start_spark: Callable[[Settings], Any],
        is_shell: bool = False,
    ) -> None:
        self.catalog = catalog
        self.settings = settings
        self.cluster = cluster
        self._screen = screen
        self._start_spark = start_spark
        self._is_shell = is_shell
        self._spark: Any = None
        self._views: dict[str, str] = {}
        """Views that statements for Spark have made, and their SQL."""
        self._sources: set[str] = set()
        """Views of what the statement reads. One that stayed would hide a topic of its name after DROP STREAM."""
        self._inserts: dict[str, Any] = {}
        self._is_empty = False
        """Whether what is read has no records: to analyse statements without running them."""
        self._numbers = itertools.count(1)

    @property
    def spark(self) -> Any:
        """The session, started when it is first used."""
        if self._spark is None:
            self._spark = self._start_spark(self.settings)
        return self._spark

    def run(self, statement: Statement) -> None:
        """Run one statement."""
        try:
            self._run(statement)
        finally:
            self._drop_sources()

    def _run(self, statement: Statement) -> None:
        match statement:
            case Select():
                self._select(statement.query)
            case Insert():
                self._insert(statement)
            case Create():
                self._create(statement)
            case Drop():
                if self.catalog.drop(statement.kind, statement.name, if_exists=statement.if_exists):
                    self._screen.note(f"dropped the {statement.kind} {statement.name}; its topic stays")
            case Show():
                self._show(statement.what)
            case Describe():
                self._describe(statement.name)
            case Set():
                self._set(statement)
            case Unset():
                name = self.settings.unset(statement.name)
                if self._spark is not None and name.startswith("spark."):
                    self._spark.conf.unset(name)
            case Terminate():
                self._terminate(statement.name)
            case Print():
                self._print(statement)
            case Passed():
                self._pass_on(statement)

    def analyse(self, statements: Sequence[tuple[Statement, Cut]]) -> None:
        """Let Spark analyse statements, each after those before it, in a session of their own and over empty sources.

        Raises what is wrong with the first that is. What has effects outside of a session is left out, and what comes after
        it may use names that are not known here.
        """
        probe = Runner(
            catalog=self.catalog.copy(),
            settings=self.settings.copy(),
            cluster=PlannedTopics(self.cluster),
            screen=self._screen,
            start_spark=self._started_for_analysis,
        )
        probe._is_empty = True
        is_opened = False
        try:
            for statement, cut in statements:
                try:
                    probe._analyse_one(statement, is_lenient=is_opened)
                except SqlError as error:
                    raise PlacedSqlError(f"line {cut.line}, column {cut.column}: {error}") from None
                except Exception as error:
                    if not hasattr(error, "getCondition"):
                        raise  # no fault of the statement's
                    is_about_columns = (error.getCondition() or "").startswith("UNRESOLVED_COLUMN")
                    if is_opened and not (is_about_columns and isinstance(statement, Select | Insert)):
                        return
                    placed = analysis_error(error, statement, cut)
                    if placed is not None:
                        raise placed from None
                finally:
                    probe._drop_sources()
                is_opened |= isinstance(statement, Passed) and not statement.is_local
        finally:
            if self._spark is not None:
                activate(self._spark)

    def _started_for_analysis(self, settings: Settings) -> Any:
        if self._spark is None:
            self._spark = self._start_spark(settings)
        return self._spark.newSession()

    def _analyse_one(self, statement: Statement, *, is_lenient: bool) -> None:
        match statement:
            case Select(query):
                self._frame_of(self._resolve(query.sql, query.window, is_lenient=is_lenient), query.is_live)
            case Insert(query=query):
                from ottla.spark.sql.frames import records

                target = self.catalog.find(statement.name) or undeclared(statement.name)
                resolved = self._resolve(query.sql, query.window, is_lenient=is_lenient)
                records(self._frame_of(resolved, query.is_live), target, statement.columns)
            case Create():
                if not (statement.if_not_exists and self.catalog.find(statement.name) is not None):
                    declaration = declaration_of(statement, self.settings.registry)
                    self.cluster.create_topic(declaration.topic, partitions_wanted(statement) or 1)
                    self.catalog.add(declaration, is_replacing=statement.is_replacing)
            case Drop():
                self.catalog.drop(statement.kind, statement.name, if_exists=statement.if_exists)
            case Set(name=str(), value=str()):
                self._set(statement)
            case Unset():
                self.settings.unset(statement.name)
            case Passed(is_local=True) if statement.sql.lstrip()[:7].upper() != "EXPLAIN":
                self._frame_of(self._resolve(statement.sql, statement.window, is_lenient=True), False)
                if statement.view is not None:
                    self._views[statement.view.lower()] = statement.sql
            case _:
                pass

    def forget_spark(self) -> bool:
        """Let the next statement start another Spark, as this one has ended. False if it had views, which are lost."""
        self._spark = None
        self._sources.clear()
        return not self._views

    def close(self) -> None:
        """Stop the queries that run. The session is the caller's to stop."""
        for each in self._inserts.values():
            each.stop()
        self._inserts.clear()

    # Queries

    def _select(self, query: Query) -> None:
        resolved = self._resolve(query.sql, query.window)
        df = self._frame_of(resolved, query.is_live)
        if query.is_live:
            self._show_live(df, resolved, query.limit)
            return
        limit = self._screen.rows_max
        shown = df if limit is None else df.limit(limit + 1)
        rows = self._run_job(shown.collect)
        self._screen.table(shown_columns(df), rows if limit is None else rows[:limit])
        if limit is not None and len(rows) > limit:
            self._screen.warn(f"only the first {limit:,} rows are shown: add a LIMIT, --max-rows N or --json")
        elif resolved.sources:
            self._screen.note(f"{counted(len(rows), 'row')}; {self._range(resolved, is_live=False)}")
        self._tell_bad(resolved, _batch_metrics(shown))

    def _show_live(self, df: Any, resolved: Resolved, limit: int | None) -> None:
        from ottla.spark.sql.live import LiveQuery

        tables = [each.name for each in resolved.sources.values() if each.kind == TABLE]
        if tables and len(tables) == len(resolved.sources) and _aggregates(df):
            raise SqlError(
                f"a live aggregation over the table {tables[0]} would count its changes, not its rows: leave EMIT CHANGES "
                "out, or declare the topic as a stream"
            )
        if not hasattr(df, "_jdf"):
            raise SqlError("a live result needs a Spark that this process starts: leave --remote out, or EMIT CHANGES")
        live = LiveQuery(df)
        try:
            # Said only when it holds: a record that is sent after this is seen.
            live.wait_until_started()
            self._screen.note(f"{self._range(resolved, is_live=True)}; Ctrl-C ends it")
            self._screen.live(shown_columns(df), live.batches(limit))
        except KeyboardInterrupt:
            if not self._is_shell:
                raise
        finally:
            live.stop()
        self._tell_bad(resolved, live.bad_records())

    def _print(self, statement: Print) -> None:
        """The records of a topic as they are, also if a stream is declared under its name."""
        source = target_of(statement.topic, Catalog(), self.cluster.topics)
        sql = f"SELECT timestamp, partition, offset, key, value FROM `{source.topic}`"
        resolved = Resolved(sql, {source.topic: source}, find_references(sql))
        before = self.settings
        self.settings = before.copy()
        if statement.from_beginning:
            self.settings.set(RESET, "earliest")
        try:
            self._show_live(self._frame_of(resolved, True), resolved, statement.limit)
        finally:
            self.settings = before

    def _insert(self, statement: Insert) -> None:
        if statement.query.is_live and not self._is_shell:
            raise SqlError(INSERT_IN_SHELL)
        target = target_of(statement.name, self.catalog, self.cluster.topics)
        resolved = self._resolve(statement.query.sql, statement.query.window)
        from ottla.spark.sql.frames import records

        rows = records(self._frame_of(resolved, statement.query.is_live), target, statement.columns)
        if statement.query.is_live:
            self._start_insert(rows, target, statement.query.sql)
            return
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        count = Observation()
        writer = rows.observe(count, F.count(F.lit(1)).alias("rows")).write.format("ottla")
        try:
            self._run_job(writer.options(**self.settings.sink(target.topic), **target.sink_options).mode("append").save)
        except Interrupted as interrupt:
            if interrupt.is_running:
                self._screen.warn(f"the INSERT could not be cancelled and may still write to the topic {target.topic}")
            elif not interrupt.is_done:
                self._screen.warn(
                    f"the INSERT was cancelled: rows that it had written by then stay in the topic {target.topic}"
                )
            else:
                self._screen.note(f"the INSERT was complete: {counted(count.get['rows'], 'row')} written to {target.topic}")
            raise
        self._screen.note(f"{counted(count.get['rows'], 'row')} written to the topic {target.topic}")

    def _start_insert(self, rows: Any, target: Declaration, text: str) -> None:
        from ottla.spark.sql.live import ContinuousInsert

        name = f"query_{next(self._numbers)}"
        self._inserts[name] = ContinuousInsert(rows, {**self.settings.sink(target.topic), **target.sink_options}, name, text)
        self._screen.note(f"{name} writes to the topic {target.topic} until TERMINATE {name} or the end of this shell")

    def _create(self, create: Create) -> None:
        found = self.catalog.find(create.name)
        if create.if_not_exists and found is not None:
            self._screen.note(f"the {found.kind} {found.name} is declared already")
            return
        if create.query is not None:
            self._create_as(create, create.query)
            return
        declaration = declaration_of(create, self.settings.registry)
        self._make_topic(declaration, partitions_wanted(create))
        self.catalog.add(declaration, is_replacing=create.is_replacing)
        self._screen.note(f"declared the {create.kind} {create.name} over the topic {declaration.topic}")

    def _create_as(self, create: Create, query: Query) -> None:
        if not self._is_shell:
            raise SqlError(CREATE_AS_IN_SHELL)
        if create.columns:
            raise SqlError(f"the columns of {create.name} are those of its SELECT: leave the list of columns out")
        resolved = self._resolve(query.sql, query.window)
        df = self._frame_of(resolved, True)
        columns = tuple(Column(each.name, _type_words(each.dataType.simpleString())) for each in df.schema.fields)
        declaration = declaration_of(Create(create.kind, create.name, columns, create.options), self.settings.registry)
        if self.catalog.find(create.name) is not None and not create.is_replacing:
            self.catalog.add(declaration)  # raises
        from ottla.spark.sql.frames import records

        rows = records(df, declaration, ())
        self._make_topic(declaration, partitions_wanted(create) or self._partitions(resolved))
        self._start_insert(rows, declaration, query.sql)
        self.catalog.add(declaration, is_replacing=create.is_replacing)

    def _pass_on(self, statement: Passed) -> None:
        resolved = self._resolve(statement.sql, statement.window, is_lenient=True)
        df = self._frame_of(resolved, False)
        if statement.view is not None:
            self._views[statement.view.lower()] = statement.sql
        if df.columns:
            self._screen.table(shown_columns(df), self._run_job(df.collect))

    # What is there

    def _show(self, what: str) -> None:
        if what == "TOPICS":
            columns, rows = topic_rows(self.cluster.topics(), self.catalog)
        elif what == "QUERIES":
            columns, rows = query_rows(self._inserts.values())
        else:
            columns, rows = declaration_rows(self.catalog, what.lower().removesuffix("s"))
        self._screen.table(columns, rows)

    def _describe(self, name: str) -> None:
        if self.catalog.find(name) is None and name not in self.cluster.topics() and self._is_view(name):
            self._pass_on(Passed(f"DESCRIBE EXTENDED {name}"))
            return
        found = self.catalog.find(name) or target_of(name, self.catalog, self.cluster.topics)
        columns, rows, notes = described_rows(found)
        self._screen.table(columns, rows)
        for each in notes:
            self._screen.note(each)

    def _set(self, statement: Set) -> None:
        if statement.name is None or statement.value is None:
            name = None if statement.name is None else self.settings.full_name(statement.name)
            columns, rows = setting_rows(self.settings, name)
            self._screen.table(columns, rows)
            return
        before = self.settings.copy()
        name = self.settings.set(statement.name, statement.value)
        # Spark may have been started with this value already, when the statements were analysed.
        if self._spark is not None and name.startswith("spark.") and self._spark.conf.get(name, None) != statement.value:
            try:
                self._spark.conf.set(name, statement.value)
            except Exception:
                self.settings.values = before.values
                raise

    def _terminate(self, name: str) -> None:
        names = list(self._inserts) if name.upper() == "ALL" else [name.lower()]
        for each in names:
            if each not in self._inserts:
                raise SqlError(f"there is no query {name}: SHOW QUERIES lists them")
            self._inserts.pop(each).stop()
            self._screen.note(f"{each} has ended")

    # Names

    def _resolve(self, sql: str, window: Window | None = None, *, is_lenient: bool = False) -> Resolved:
        return resolve(sql, self.catalog, self.cluster.topics, lambda name: is_lenient or self._is_view(name), window)

    def _is_view(self, name: str) -> bool:
        return name.lower() in self._views or (self._spark is not None and bool(self._spark.catalog.tableExists(f"`{name}`")))

    def _frame_of(self, resolved: Resolved, is_live: bool) -> Any:
        """The query's DataFrame, over views of what it reads."""
        from ottla.spark.sql.frames import frame

        sources = dict(resolved.sources)
        metadata = resolved.references.metadata
        for name in resolved.references.names:  # views that were made of statements read something themselves
            if name.lower() in self._views:
                inner = self._resolve(self._views[name.lower()], is_lenient=True)
                sources |= inner.sources
                metadata |= inner.references.metadata
        has_stream = any(each.kind != TABLE for each in sources.values())
        for name, declaration in sources.items():
            streams = is_live and not (declaration.kind == TABLE and has_stream)
            made = frame(
                self.spark,
                declaration,
                self.settings.source(declaration.topic, streams),
                is_live=streams,
                metadata=metadata,
                bad_records=self.settings.bad_records,
                observed_as=OBSERVED + declaration.name,
                is_empty=self._is_empty,
            )
            made.createOrReplaceTempView(f"`{name}`")
            self._sources.add(name)
        return _without_repeats(self.spark.sql(resolved.sql))

    def _drop_sources(self) -> None:
        """Only after the statement: Spark Connect looks views up when it runs a query."""
        while self._sources:
            self.spark.catalog.dropTempView(self._sources.pop())

    def _make_topic(self, declaration: Declaration, partitions: int | None) -> None:
        if check_topic(declaration, partitions, self.cluster.topics()) and partitions is not None:
            self.cluster.create_topic(declaration.topic, partitions)
            self._screen.note(f"made the topic {declaration.topic} with {counted(partitions, 'partition')}")

    def _partitions(self, resolved: Resolved) -> int:
        there = self.cluster.topics()
        return max((there.get(each.topic, 1) for each in resolved.sources.values()), default=1)

    def _range(self, resolved: Resolved, *, is_live: bool) -> str:
        topics: Collection[str] = dict.fromkeys(each.topic for each in resolved.sources.values())
        words = f"{', '.join(topics)} from {self.settings.starts_at(is_live)}"
        if not is_live:
            return f"{words} to {self.settings.values.get('endingOffsets', 'latest')}"
        # Spark plans a batch source once for a streaming query: later changes of a joined table are not seen.
        tables = [each.name for each in resolved.sources.values() if each.kind == TABLE]
        fixed = f"; {', '.join(tables)} as of now" if tables and len(tables) < len(resolved.sources) else ""
        return f"{words} on{fixed}"

    # Jobs

    def _run_job(self, work: Callable[[], Any]) -> Any:
        # Spark remembers the groups that were cancelled, and this session may be in a JVM that served others.
        group = f"ottla-sql-{uuid.uuid4()}"
        spark = self.spark
        return run_interruptibly(in_job_group(spark, group, work), lambda: cancel_group(spark, group))

    def _tell_bad(self, resolved: Resolved, counts: dict[str, int]) -> None:
        for declaration in resolved.sources.values():
            bad = counts.get(OBSERVED + declaration.name, 0)
            if bad and "_error" not in resolved.references.metadata:
                name, verb = declaration.name, "was" if bad == 1 else "were"
                self._screen.warn(
                    f"{counted(bad, 'record')} of {name} did not fit the columns and {verb} left out: "
                    f"SELECT _partition, _offset, _error FROM {name} WHERE _error IS NOT NULL shows why"
                )


def _type_words(kind: str) -> str:
    """A type as declarations write it. The names of fields in a struct keep their case."""
    return kind if "<" in kind else kind.upper()


def _without_repeats(df: Any) -> Any:
    """`SELECT *, _offset` has `_offset` in its `*` too: shown once."""
    names = df.columns
    kept = [index for index, name in enumerate(names) if not (name.startswith("_") and name in names[:index])]
    if len(kept) == len(names):
        return df
    placed = df.toDF(*(f"_{index}" for index in range(len(names))))
    from pyspark.sql import functions as F

    return placed.select(*(F.col(f"_{index}").alias(names[index]) for index in kept))


def _batch_metrics(df: Any) -> dict[str, int]:
    """What Spark has counted while the DataFrame was collected, by name. Nothing on Spark Connect."""
    plan = getattr(df, "_jdf", None)
    if plan is None:
        return {}
    found = plan.queryExecution().observedMetrics()
    names = [name for name in found.keys().mkString("\n").split("\n") if name]
    return {name: found.apply(name).getLong(0) for name in names}


def _aggregates(df: Any) -> bool:
    plan = getattr(df, "_jdf", None)
    return plan is not None and "Aggregate [" in plan.queryExecution().analyzed().toString()


__all__ = ["ClusterTopics", "Interrupted", "Runner"]
