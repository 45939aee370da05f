"""The voter set of the metadata quorum, from the configuration or from control records. Immutable; no IO.

A static quorum (kraft.version 0) names its voters in `controller.quorum.voters`, by node id alone. A dynamic one (kraft.version
1) keeps them in KRaftVoters control records, by node id and directory id: a controller that restarts with an empty disk counts
as another voter, so it cannot vote twice in an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.errors import OttlaError
from ottla.ids import ZERO_UUID, InvalidUuid, Uuid, uuid_parse, uuid_text
from ottla.wire.messages.control_records import Endpoint, KRaftVersionFeature, VotersRecord, VotersRecordVoter

KRAFT_VERSIONS = (0, 1)
"""The lowest and the highest supported level of kraft.version."""


class InvalidVoters(OttlaError):
    """`--initial-controllers` is malformed."""


class ReplicaKey(NamedTuple):
    """One replica of the metadata log. The directory id is zero where it is unknown, as in static quorums."""

    id: int
    directory_id: Uuid = ZERO_UUID

    def matches(self, replica: ReplicaKey) -> bool:
        """Whether this key means `replica`: the ids are equal, and the directories too if this key has one."""
        return self.id == replica.id and self.directory_id in (ZERO_UUID, replica.directory_id)

    def __str__(self) -> str:
        return f"{self.id}" if self.directory_id == ZERO_UUID else f"{self.id} ({uuid_text(self.directory_id)})"


Endpoints = Mapping[str, tuple[str, int]]
"""Listener name → host and port."""


class Voter(NamedTuple):
    """One voter and its endpoints."""

    key: ReplicaKey
    endpoints: Endpoints
    kraft_versions: tuple[int, int] = KRAFT_VERSIONS


class VoterSet:
    """The voters, by id. Two sets are equal if their voters are equal, including endpoints."""

    __slots__ = ("_voters",)

    def __init__(self, voters: Iterable[Voter] = ()) -> None:
        self._voters = {voter.key.id: voter for voter in sorted(voters, key=lambda voter: voter.key.id)}

    def __len__(self) -> int:
        return len(self._voters)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self._voters.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._voters == other._voters

    def __hash__(self) -> int:
        return hash(tuple(self._voters))

    def __repr__(self) -> str:
        return f"VoterSet({', '.join(str(voter.key) for voter in self)})"

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self._voters)

    @property
    def majority(self) -> int:
        """The number of votes that wins an election."""
        return len(self._voters) // 2 + 1

    def get(self, voter_id: int) -> Voter | None:
        return self._voters.get(voter_id)

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether this replica is a voter; a static set compares ids alone."""
        voter = self._voters.get(key.id)
        return voter is not None and voter.key.matches(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        return len(self._voters) == 1 and self.is_voter(key)

    def with_voter(self, voter: Voter) -> VoterSet:
        """This set with `voter` in place of the voter with the same id."""
        return VoterSet([*(other for other in self if other.key.id != voter.key.id), voter])

    def to_record(self) -> VotersRecord:
        """The KRaftVoters control record of this set."""
        record = VotersRecord()
        for voter in self:
            low, high = voter.kraft_versions
            endpoints = [Endpoint(name=name, host=host, port=port) for name, (host, port) in voter.endpoints.items()]
            record.voters.append(
                VotersRecordVoter(
                    voter_id=voter.key.id,
                    voter_directory_id=voter.key.directory_id,
                    endpoints=endpoints,
                    kraft_version_feature=KRaftVersionFeature(min_supported_version=low, max_supported_version=high),
                )
            )
        return record

    @classmethod
    def from_record(cls, record: VotersRecord) -> VoterSet:
        return cls(
            Voter(
                ReplicaKey(voter.voter_id, voter.voter_directory_id),
                {endpoint.name: (endpoint.host, endpoint.port) for endpoint in voter.endpoints},
                (voter.kraft_version_feature.min_supported_version, voter.kraft_version_feature.max_supported_version),
            )
            for voter in record.voters
        )


def static_voters(entries: Iterable[tuple[int, str, int]], listener: str) -> VoterSet:
    """The voters of `controller.quorum.voters`, each (id, host, port), all reached through the controllers' `listener`."""
    return VoterSet(Voter(ReplicaKey(voter_id), {listener: (host, port)}) for voter_id, host, port in entries)


def parse_initial_controllers(text: str, listener: str) -> VoterSet:
    """The voters of `--initial-controllers`: `id@host:port:directory-id,…`."""
    voters: dict[int, Voter] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        voter_id, host, port, directory = _split_entry(entry)
        try:
            directory_id = uuid_parse(directory)
        except InvalidUuid as invalid:
            raise InvalidVoters(f"--initial-controllers: the directory id of {entry!r}: {invalid}") from None
        if voter_id in voters:
            raise InvalidVoters(f"--initial-controllers names controller {voter_id} twice: every one has an id of its own")
        voters[voter_id] = Voter(ReplicaKey(voter_id, directory_id), {listener: (host, port)})
    if not voters:
        raise InvalidVoters("--initial-controllers names no controller: write id@host:port:directory-id,…")
    return VoterSet(voters.values())


def _split_entry(entry: str) -> tuple[int, str, int, str]:
    number, at, rest = entry.partition("@")
    address, _, directory = rest.rpartition(":")
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not at or not host or not _is_number(number, (1 << 31) - 1) or not _is_number(port, 65535):
        raise InvalidVoters(f"--initial-controllers: {entry!r} is not of the form id@host:port:directory-id")
    return int(number), host, int(port), directory


def _is_number(text: str, largest: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= largest
