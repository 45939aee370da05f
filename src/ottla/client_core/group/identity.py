"""Who a member is to its coordinator: its member id and generation or epoch."""

from __future__ import annotations

from typing import Final

NO_GENERATION: Final = -1


class Identity:
    """A member id with the generation in which it is valid. Requests carry both; answers to older ones do not count."""

    def __init__(self, group_id: str, group_instance_id: str | None, member_id: str = "") -> None:
        self.group_id = group_id
        self.group_instance_id = group_instance_id
        self.member_id = member_id
        self.generation = NO_GENERATION
        self.losses = 0
        """How often a membership has ended."""

    @property
    def is_member(self) -> bool:
        """Whether the coordinator has given a generation, and not taken it back."""
        return self.generation != NO_GENERATION

    @property
    def now(self) -> tuple[str, int]:
        """To compare: has anything changed since?"""
        return self.member_id, self.generation

    def forget(self, *, keeps_id: bool = False) -> None:
        """The generation is not valid any more, and the member id neither unless it is kept."""
        self.losses += self.is_member
        self.generation = NO_GENERATION
        if not keeps_id:
            self.member_id = ""
