"""Fields of control records: transaction markers and events of the metadata quorum."""

from ottla.errors import DecodeError, OttlaError
from ottla.records.control import ControlRecord, ControlType, parse_control, parse_end_marker
from ottla.records.record import Record
from ottla.wire import Message, decode
from ottla.wire.json_form import to_json
from ottla.wire.messages.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

# type → (the word Kafka's tool puts before the record, its schema)
_EVENTS: dict[int, tuple[str, type[Message]]] = {
    ControlType.LEADER_CHANGE: ("LeaderChange", LeaderChangeMessage),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
    ControlType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}


def control_fields(record: Record) -> dict[str, object]:
    """The fields to show of a control record. One that cannot be read is shown as unreadable, and the dump continues."""
    try:
        control = parse_control(record)
        if control.type in (ControlType.ABORT, ControlType.COMMIT):
            marker = parse_end_marker(record)
            return {
                "endTxnMarker": "COMMIT" if marker.is_commit else "ABORT",
                "coordinatorEpoch": marker.coordinator_epoch,
            }
        return _event_fields(control)
    except OttlaError as damage:
        return {"controlType": f"unreadable ({damage})"}


def _event_fields(control: ControlRecord) -> dict[str, object]:
    if control.type not in _EVENTS:
        return {"controlType": f"UNKNOWN({control.type})"}
    word, schema = _EVENTS[control.type]
    # The schemas begin with the version field, which `parse_control` has already removed.
    body = control.version.to_bytes(2, "big", signed=True) + control.body
    if control.version < 0:
        raise DecodeError(f"version {control.version} is negative")
    message, _ = decode(schema, control.version, body)
    return {word: to_json(message, control.version)}
