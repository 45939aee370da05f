"""Reads and writes `quorum-state`, the file beside the metadata log that makes this replica's election durable.

JSON without spaces, fields in the order of the schema QuorumStateData, the version last:

    1  {"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}
    0  {"clusterId":"","leaderId":1,…,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}

Version 1 belongs to kraft.version 1. A damaged file is refused: a replica that lost its vote could vote twice in an epoch.
"""

from __future__ import annotations

import json

from ottla.env import SMALL_FILE_BYTES_MAX, Disk
from ottla.errors import CorruptFile
from ottla.ids import ZERO_UUID, InvalidUuid, Uuid, uuid_parse, uuid_text
from ottla.raft.election import NO_LEADER, ElectionState
from ottla.raft.voters import ReplicaKey, VoterSet

QUORUM_STATE = "quorum-state"
VERSIONS = (0, 1)
_REMEDY = (
    "Restore the file from a copy. Without one: on a quorum of one, remove it, and the next epoch follows from the log; else "
    "remove this controller from the quorum and let it join again"
)


def format_quorum_state(election: ElectionState, kraft_version: int, voters: VoterSet) -> bytes:
    """The bytes of the file."""
    voted = election.voted
    state = f'"leaderId":{election.leader_id},"leaderEpoch":{election.epoch},"votedId":{-1 if voted is None else voted.id}'
    if kraft_version == 0:
        ids = ",".join(f'{{"voterId":{voter_id}}}' for voter_id in voters.ids)
        text = f'{{"clusterId":"",{state},"appliedOffset":0,"currentVoters":[{ids}],"data_version":0}}'
    else:
        directory_id = uuid_text(ZERO_UUID if voted is None else voted.directory_id)
        text = f'{{{state},"votedDirectoryId":"{directory_id}","data_version":1}}'
    return text.encode()


def parse_quorum_state(path: str, data: bytes) -> ElectionState:
    """The election in the file's bytes; `CorruptFile` if they are damaged or of a newer version."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(path, 0, f"it is not JSON: {error}", _REMEDY) from None
    if not isinstance(content, dict):
        raise CorruptFile(path, 0, "it is not a JSON object", _REMEDY)
    version = _number(path, content, "data_version")
    if version not in VERSIONS:
        raise CorruptFile(path, 0, f"data_version {version} is unknown", "A newer release may have written it: use that one")
    leader_id = _number(path, content, "leaderId")
    epoch = _number(path, content, "leaderEpoch", 1 << 63)  # a former release could write 2^31
    voted_id = _number(path, content, "votedId")
    voted = ReplicaKey(voted_id, _directory_id(path, content) if version else ZERO_UUID) if voted_id >= 0 else None
    if epoch < 0 or leader_id < NO_LEADER:
        raise CorruptFile(path, 0, f"there is no epoch {epoch} with leader {leader_id}", _REMEDY)
    return ElectionState(epoch, leader_id, voted)


def _number(path: str, content: dict[str, object], name: str, limit: int = 1 << 31) -> int:
    value = content.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit:
        raise CorruptFile(path, 0, f"{name} should be a number, not {value!r}", _REMEDY)
    return value


def _directory_id(path: str, content: dict[str, object]) -> Uuid:
    text = content.get("votedDirectoryId")
    try:
        return uuid_parse(text if isinstance(text, str) else "")
    except InvalidUuid as invalid:
        raise CorruptFile(path, 0, f"votedDirectoryId: {invalid}", _REMEDY) from None


def read_quorum_state(disk: Disk, folder: str) -> ElectionState | None:
    """The last election, None if there was none; `CorruptFile` if the file is damaged."""
    path = f"{folder}/{QUORUM_STATE}"
    try:
        data = disk.read_file(path, SMALL_FILE_BYTES_MAX)
    except FileNotFoundError:
        return None
    return parse_quorum_state(path, data)


async def write_quorum_state(disk: Disk, folder: str, election: ElectionState, kraft_version: int, voters: VoterSet) -> None:
    """Write the file. When this returns, the election is durable."""
    await disk.replace_file(f"{folder}/{QUORUM_STATE}", format_quorum_state(election, kraft_version, voters))
