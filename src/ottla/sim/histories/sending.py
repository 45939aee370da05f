"""Checks of what was sent: each stored record is where its producer was told, once, in order, and consumers get it.

Consumers begin at the start of each partition: a record below one that was got, and that nobody has got, is lost.
"""

from __future__ import annotations

from ottla.ids import TopicPartition
from ottla.sim.histories.facts import Facts, Finding


def inconsistent_offsets(facts: Facts) -> list[Finding]:
    """An offset holds one record, for all clients and at all times."""
    return [
        Finding("inconsistent offset", f"{place} offset {offset} holds {_by_whom(values)}")
        for place, offsets in facts.values.items()
        for offset, values in offsets.items()
        if len(values) > 1
    ]


def duplicates(facts: Facts) -> list[Finding]:
    """A record of an idempotent producer is stored once."""
    found = []
    for value, places in facts.places.items():
        send = facts.send_of.get(value)
        if len(places) > 1 and (send is None or not send.is_repeatable):
            listed = ", ".join(f"{place} offset {offset}" for place, offset in places)
            found.append(Finding("duplicate", f"{value!r} is at {listed}"))
    return found


def invented_records(facts: Facts) -> list[Finding]:
    """Consumers get only what was sent, where it was sent to. Partitions to which the history sends nothing are left out."""
    known = {send.place for send in facts.sends}
    found = []
    for value, places in facts.places.items():
        send = facts.send_of.get(value)
        for place, offset in places:
            if place in known and (send is None or send.place != place):
                found.append(Finding("invented record", f"{place} offset {offset} holds {value!r}, which was not sent there"))
    return found


def lost_writes(facts: Facts) -> list[Finding]:
    """A stored record is got by consumers: none may go past it."""
    found = []
    for send in facts.sends:
        if send.offset is None or send.value in facts.first_seen_s or not facts.must_be_seen(send):
            continue
        if send.offset < facts.seen_end.get(send.place, 0):
            found.append(
                Finding(
                    "lost write",
                    f"{send.process} was told that {send.value!r} is at {send.place} offset {send.offset}, and no consumer got "
                    f"it, though they have read up to {facts.seen_end[send.place] - 1}",
                )
            )
    return found


def unseen_records(facts: Facts) -> list[Finding]:
    """At the end, when consumers have had the time to read everything, no stored record is unseen."""
    return [
        Finding("unseen record", f"{send.value!r} was stored at {send.place} offset {send.offset}, and no consumer got it")
        for send in facts.sends
        if send.is_stored
        and send.value not in facts.first_seen_s
        and (send.offset is None or send.offset >= facts.seen_end.get(send.place, 0))
        and facts.must_be_seen(send)
    ]


def out_of_order_sends(facts: Facts) -> list[Finding]:
    """Records that one producer sends to one partition are stored in the order of its calls."""
    found = []
    last: dict[tuple[str, TopicPartition], tuple[int, str]] = {}
    for send in facts.sends:
        offset = facts.offset_of(send)
        if offset is None or send.is_repeatable:
            continue
        before = last.get((send.process, send.place))
        if before is not None and offset <= before[0]:
            found.append(
                Finding(
                    "sends out of order",
                    f"{send.process} sent {send.value!r} to {send.place} after {before[1]!r}, and it is at {offset}, before "
                    f"{before[0]}",
                )
            )
        else:
            last[send.process, send.place] = (offset, send.value)
    return found


def lags_s(facts: Facts) -> list[float]:
    """How long each stored record was unseen after its producer knew, shortest first; records that nobody got are left out."""
    return sorted(
        max(facts.first_seen_s[send.value] - send.answered_s, 0.0)
        for send in facts.sends
        if send.offset is not None and send.answered_s is not None and send.value in facts.first_seen_s
    )


def _by_whom(values: dict[str, str]) -> str:
    return " and ".join(f"{value!r} (for {process})" for value, process in values.items())
