"""The base classes of what clients raise, by what helps: try again, abort the transaction, or change something.

Every error code has one class (`partitions.py`, `groups.py`, `cluster.py`), and some errors of the client's own have no code
(`client.py`). The kinds are those of KIP-1050 as Apache Kafka 4.3 has them, plus `AbortableError` and `FatalError`, which the
KIP describes but Kafka does not have as classes. An error that is of no kind concerns one request only, such as
`TopicExistsError`.
"""

import builtins
from typing import Any, ClassVar, Final

from ottla.errors.codes import ErrorCode, error_meaning, error_name
from ottla.errors.faults import KafkaError

NO_CODE: Final = -2
"""The `code` of an error that only a client can meet. The protocol does not use this number."""

CLASSES: dict[int, type["ClientError"]] = {}
"""The class of each code; complete once `by_code.py` is imported."""


class ClientError(KafkaError):
    """What clients raise: an error with a class of its own.

    `text` says what happened, to what, and what to do next; without it the text is the general one of the class.
    """

    __module__ = "ottla.errors"
    code: int = NO_CODE
    about: ClassVar[str] = "The client met an error."
    """The text of an error without a code that is made without one."""

    def __init_subclass__(cls, code: ErrorCode | None = None, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if cls.__module__.startswith("ottla.errors."):
            cls.__module__ = "ottla.errors"  # tracebacks then name what a program imports
        if code is not None:
            assert code not in CLASSES, f"{code.name} has two classes"
            cls.code = code
            CLASSES[code] = cls

    def __init__(
        self, text: str | None = None, *, record_errors: tuple[tuple[int, str], ...] = (), is_unsent: bool = False
    ) -> None:
        if text is None:
            text = self.about if self.code == NO_CODE else error_meaning(self.code)
        super().__init__(self.code, text, record_errors)
        self.is_unsent = is_unsent

    @property
    def name(self) -> str:
        """The protocol's name for the code, such as `NOT_CONTROLLER`; the name of the class where there is no code."""
        return error_name(self.code) if self.code != NO_CODE else type(self).__name__


class RetriableError(ClientError):
    """The same request may succeed later. Clients retry by themselves, so this surfaces only when their time is up."""

    @property
    def is_retriable(self) -> bool:
        """True for every error of this kind."""
        return True


class RefreshRetriableError(RetriableError):
    """The same request may succeed after a look for the right broker: metadata or coordinator must be looked up again."""


class InvalidMetadataError(RefreshRetriableError):
    """The client's metadata is out of date: refresh it, then try again."""


class TimeoutError(RetriableError, builtins.TimeoutError):
    """Something took longer than it may. `except TimeoutError` with Python's own class catches this too."""

    code = ErrorCode.REQUEST_TIMED_OUT


class AbortableError(ClientError):
    """The transaction cannot be committed: abort it, then begin a new one with the same producer."""


class FatalError(ClientError):
    """Neither a retry nor an abort helps: the application has to make a new client or to change something."""


class ApplicationRecoverableError(FatalError):
    """This client cannot go on: close it, make a new one, and go on from the last state that was committed."""


class InvalidConfigurationError(FatalError, code=ErrorCode.INVALID_CONFIG):
    """A setting has an unknown name or a value that is not allowed."""


class AuthenticationError(InvalidConfigurationError):
    """The login failed: check the credentials, the certificates and the mechanism."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED


class AuthorizationError(InvalidConfigurationError):
    """The principal may not do this: grant it the permission, or log in as another one."""

    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class InvalidOffsetError(ClientError):
    """A position in a partition is missing or not valid: seek, or set auto.offset.reset."""

    about = "The position in a partition is missing or not valid; seek to one, or set auto.offset.reset."
