"""The bit field of authorized operations."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.admin.acl_types import AclOperation, operations_of

NOT_ASKED_FOR = -(2**31)


def test_operations_that_were_not_asked_for_are_none() -> None:
    assert operations_of(NOT_ASKED_FOR) is None
    assert operations_of(0) == frozenset()


@given(st.sets(st.sampled_from([each for each in AclOperation if each])))
def test_each_operation_has_its_bit(operations: set[AclOperation]) -> None:
    assert operations_of(sum(1 << each for each in operations)) == operations


def test_bits_of_newer_brokers_are_ignored() -> None:
    assert operations_of(1 << 30 | 1 << AclOperation.READ) == {AclOperation.READ}
