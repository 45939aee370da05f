"""DescribeUserScramCredentials: which SCRAM credentials users have: mechanisms and iterations, never keys.

There is only version 0.
"""

from __future__ import annotations

from collections import Counter

from ottla.broker.requests.context import RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.image.security import SecurityImage
from ottla.metadata.scram import HASH_NAMES
from ottla.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(context: RequestContext, request: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    security = context.services.metadata.image.security
    counts = Counter(user.name for user in request.users or ())
    names = list(counts) or sorted({name for name, _ in security.credentials})
    return DescribeUserScramCredentialsResponse(results=[_described(security, name, counts[name]) for name in names])


def refuse(
    context: RequestContext, request: DescribeUserScramCredentialsRequest, error: KafkaError
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=str(error))


def _described(security: SecurityImage, name: str, times: int) -> DescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResult(user=name)
    if times > 1:
        result.error_code = ErrorCode.DUPLICATE_RESOURCE
        result.error_message = f"user {name!r} is named {times} times: name it once"
        return result
    for mechanism in HASH_NAMES:
        record = security.credentials.get((name, mechanism))
        if record is not None:
            result.credential_infos.append(CredentialInfo(mechanism=mechanism, iterations=record.iterations))
    if not result.credential_infos:
        result.error_code = ErrorCode.RESOURCE_NOT_FOUND
        result.error_message = f"user {name!r} has no SCRAM credentials"
    return result
