"""Rules for the stages of the request pipeline: who may do what, and who is slowed down."""

from ottla.broker.requests.throttle import Usage
from ottla.ids import Principal
from ottla.metadata.acls import ResourceType
from ottla.metadata.authorizer import Verdict


class Denying:
    """An authorizer that denies what is in `denied`: pairs of resource type and name. Changing them changes its version."""

    def __init__(self, *denied: tuple[int, str]) -> None:
        self.version = 0
        self.denied = set(denied)
        self.asked: list[tuple[Principal, str, int, int, str]] = []

    def deny(self, *denied: tuple[int, str]) -> None:
        """Deny these from now on, and nothing else."""
        self.version += 1
        self.denied = set(denied)

    def deny_topics(self, *names: str) -> None:
        self.deny(*((ResourceType.TOPIC, name) for name in names))

    def decide(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> Verdict:
        self.asked.append((principal, host, operation, resource_type, name))
        is_denied = (resource_type, name) in self.denied
        return Verdict(not is_denied, "Denying" if is_denied else "DefaultAllow")

    def allows_any(self, principal: Principal, host: str, operation: int, resource_type: int) -> bool:
        return all(denied != resource_type for denied, _ in self.denied)


class Throttling:
    """A throttle that mutes for `delay` of what a request has used."""

    def __init__(self, delay_ms: int = 0) -> None:
        self.ms = delay_ms
        self.used: list[Usage] = []

    def delay_ms(self, usage: Usage) -> int:
        self.used.append(usage)
        return self.ms if self.ms else usage.request_bytes % 5

    def fetch_bytes_max(self, user: str, client_id: str | None) -> int:
        return 2**31 - 1
