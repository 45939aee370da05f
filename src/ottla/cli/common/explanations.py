"""The text of an error for a person at a terminal: what the client said, the error's name, and the command that helps."""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode, error_name

HINTS: dict[int, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`ottla topics list` shows the topics there are",
    ErrorCode.LEADER_NOT_AVAILABLE: "`ottla topics describe --check` says why and what to do",
    ErrorCode.GROUP_ID_NOT_FOUND: "`ottla groups list` shows all groups",
    ErrorCode.NON_EMPTY_GROUP: "`ottla groups describe GROUP --members` shows them",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`ottla transactions list` shows all of them",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "set delegation.token.secret.key, to the same secret on all nodes",
}
"""The command that shows which names there are, by the error for a name that there is not; or what is wrong."""
_PLAIN = frozenset(
    {ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_CONFIG}
)
"""Errors that the client itself found: their texts say all there is, and no broker sent the name."""
NO_NODE = ". Start a node with `ottla up`, or name another with --bootstrap-server"


def explain(error: BaseException) -> str:
    """The text of `error`, with a hint where a command can help."""
    text = str(error)
    if not isinstance(error, KafkaError):
        return text
    if getattr(error, "is_absent", False):
        return text + NO_NODE
    name = error_name(error.code)
    if error.code > 0 and error.code not in _PLAIN and name not in text:
        text = f"{text.removesuffix('.')} ({name})"
    hint = HINTS.get(error.code)
    return text if hint is None or hint in text else f"{text}: {hint}"
