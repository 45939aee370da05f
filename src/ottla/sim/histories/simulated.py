"""The history of a simulated run: which of its partitions the checks can judge, and the verdict as a `Violation`.

Clients record what they do and see in `Stage.history`; the auditor, which reads everything in the end, is a consumer there. The
checks know nothing of the simulator: they are those of real processes.
"""

from __future__ import annotations

from ottla.ids import TopicPartition
from ottla.sim.checkers.checker import Checker, Place, TopicPlan, Violation
from ottla.sim.histories.checking import Report, check
from ottla.sim.histories.history import History, Poll, Send


class RecordedRun(Checker):
    """Knows the topics of a run and which records may be removed. `judge` checks its history."""

    def __init__(self) -> None:
        self._topics: dict[str, list[TopicPlan]] = {}
        self._shrinking: set[TopicPartition] = set()

    def topic_made(self, topic: TopicPlan) -> None:
        self._topics.setdefault(topic.name, []).append(topic)

    def deletion_requested(self, place: Place, offset: int) -> None:
        self._shrinking.add(place.name)

    def judge(self, history: History) -> Report:
        """Check a history in which everything was read in the end; `Violation` with the findings, if there are any."""
        report = check(self._lasting(history), is_read_whole=True, shrinking=self._all_shrinking())
        if report.findings:
            raise Violation("the history of the clients: " + "\n".join(report.lines))
        return report

    def _all_shrinking(self) -> set[TopicPartition]:
        topics = [topic for named in self._topics.values() for topic in named if topic.is_compacted or topic.is_retained]
        return self._shrinking | {TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)}

    def _lasting(self, history: History) -> History:
        """The history without topics that were deleted: another topic may have their name and their offsets."""
        gone = {name for name, topics in self._topics.items() if any(topic.is_leaving for topic in topics)}
        lasting = History(history.now_s)
        for event in history.events:
            if isinstance(event, Poll):
                records = [record for record in event.records if record.place.topic not in gone]
                lasting.events.append(
                    Poll(event.process, records, event.at_s, event.group, event.is_committed, event.transaction)
                )
            elif not isinstance(event, Send) or event.place.topic not in gone:
                lasting.events.append(event)
        return lasting


def value_text(value: bytes | None) -> str:
    """The value of a record as histories have it, without what fills it up."""
    return (value or b"").rstrip(b".").decode()
