"""Checks of transactions: readers of committed records get all of a transaction or nothing, and nothing before its commit."""

from __future__ import annotations

from collections import defaultdict

from ottla.sim.histories.facts import Facts, Finding
from ottla.sim.histories.history import Poll, Seen, Send, Transaction


def aborted_reads(facts: Facts) -> list[Finding]:
    """No reader of committed records gets a record of an aborted transaction, and nobody a record that was refused."""
    found = []
    for poll, record, send in _reads(facts):
        if send.is_failed:
            found.append(_finding("aborted read", poll, record, "whose send was refused"))
        elif poll.is_committed and send.transaction is not None and send.transaction.wanted == "abort":
            found.append(_finding("aborted read", poll, record, f"of transaction {send.transaction.name}, which was aborted"))
    return found


def precommitted_reads(facts: Facts) -> list[Finding]:
    """No reader of committed records gets a record before the commit of its transaction was asked for."""
    found = []
    for poll, record, send in _reads(facts):
        transaction = send.transaction
        if not poll.is_committed or transaction is None or transaction.wanted == "abort":
            continue
        if transaction.asked_s is None or transaction.asked_s > poll.at_s:
            when = "was never asked for" if transaction.asked_s is None else "was asked for later"
            found.append(_finding("precommitted read", poll, record, f"of transaction {transaction.name}, whose commit {when}"))
    return found


def torn_transactions(facts: Facts) -> list[Finding]:
    """At the end, when readers of committed records have had the time to read everything, they have all of a transaction."""
    got: set[str] = {record.value for poll in facts.polls if poll.is_committed for record in poll.records}
    if not any(poll.is_committed for poll in facts.polls):
        return []
    there: defaultdict[str, list[str]] = defaultdict(list)
    missing: defaultdict[str, list[str]] = defaultdict(list)
    ended: dict[str, Transaction] = {}
    for send in facts.sends:
        if send.transaction is None or send.offset is None or send.place in facts.shrinking:
            continue
        (there if send.value in got else missing)[send.transaction.name].append(send.value)
        ended[send.transaction.name] = send.transaction
    found = []
    for name, values in missing.items():
        if there[name]:
            text = f"of transaction {name} {len(there[name])} records are there, and {len(values)} are not: {values[0]!r}"
            found.append(Finding("torn transaction", text))
        elif ended[name].is_committed:
            text = f"transaction {name} was committed, and none of its {len(values)} records is there"
            found.append(Finding("torn transaction", text))
    return found


def _reads(facts: Facts) -> list[tuple[Poll, Seen, Send]]:
    return [
        (poll, record, facts.send_of[record.value])
        for poll in facts.polls
        for record in poll.records
        if record.value in facts.send_of
    ]


def _finding(check: str, poll: Poll, record: Seen, why: str) -> Finding:
    return Finding(check, f"{poll.process} got {record.value!r} at {record.place} offset {record.offset}, {why}")
