"""Chooses the version of each API to use with a peer, from the versions that the peer serves. No IO."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ottla.link.errors import NoCommonVersion
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.messages.api_versions import ApiVersion

NO_FEATURES: Mapping[str, int] = MappingProxyType({})


UNSTABLE_USED = frozenset({ApiKey.INIT_PRODUCER_ID})
"""The APIs of which we use an unstable newest version too, with nodes that serve it."""


def speakable(api_key: int) -> tuple[int, int]:
    """The oldest and newest version that we use. An unstable newest version is left out, with exceptions."""
    api = APIS[api_key]
    return api.oldest, api.advertised(api_key in UNSTABLE_USED)[1]


class PeerVersions:
    """The versions in a node's ApiVersions response."""

    __slots__ = ("_chosen", "_ranges", "address", "features", "features_epoch")

    def __init__(
        self, address: str, served: Iterable[ApiVersion], features: Mapping[str, int] = NO_FEATURES, features_epoch: int = -1
    ) -> None:
        self.address = address
        self.features = features
        """The finalized features of the cluster and their levels, as the node knows them at `features_epoch`."""
        self.features_epoch = features_epoch
        self._ranges = {each.api_key: (each.min_version, each.max_version) for each in served}
        self._chosen: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"PeerVersions({self.address}, {self._ranges})"

    @property
    def keys(self) -> frozenset[int]:
        """The keys of all APIs that the peer serves, also of those that we do not know."""
        return frozenset(self._ranges)

    def served(self, api_key: int) -> tuple[int, int] | None:
        """The oldest and newest version that the peer serves; None if it does not serve the API."""
        return self._ranges.get(api_key)

    def has(self, api_key: int, version: int = 0) -> bool:
        """Whether both sides know the API in `version` or a newer one."""
        found = self._ranges.get(api_key)
        return found is not None and version <= min(found[1], speakable(api_key)[1]) and found[0] <= speakable(api_key)[1]

    def newest(self, api_key: int) -> int:
        """The newest version that both sides know. Raises `NoCommonVersion`."""
        version = self._chosen.get(api_key)
        if version is None:
            version = self._chosen[api_key] = self._choose(api_key)
        return version

    def _choose(self, api_key: int) -> int:
        ours_oldest, ours_newest = speakable(api_key)
        name = APIS[api_key].name
        found = self._ranges.get(api_key)
        if found is None:
            raise NoCommonVersion(
                self.address,
                f"{self.address} does not serve the API {name}, which Ottla speaks in versions {ours_oldest} to {ours_newest}: "
                "ask another node, or upgrade that one",
            )
        newest = min(ours_newest, found[1])
        if newest < max(ours_oldest, found[0]):
            older = "that node" if found[1] < ours_oldest else "Ottla"
            raise NoCommonVersion(
                self.address,
                f"{self.address} serves the API {name} in versions {found[0]} to {found[1]}, Ottla speaks {ours_oldest} to "
                f"{ours_newest}: they have none in common. Upgrade {older}",
            )
        return newest
