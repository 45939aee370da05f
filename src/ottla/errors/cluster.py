"""Errors of the cluster as a whole: requests, security, controllers, quorum, brokers, features, telemetry.

Names follow Apache Kafka's Java exceptions. A docstring is the sentence of `codes.py`, and the text of an error without one.
"""

from ottla.errors.codes import ErrorCode
from ottla.errors.kinds import AuthenticationError, AuthorizationError, ClientError, InvalidConfigurationError, RetriableError


class UnknownServerError(ClientError, code=ErrorCode.UNKNOWN_SERVER_ERROR):
    """The server met an error it has no code for; its log says which."""


class ControllerMovedError(ClientError, code=ErrorCode.STALE_CONTROLLER_EPOCH):
    """The request comes from a controller that has since been replaced; it is ignored."""


class TopicAuthorizationError(AuthorizationError, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED):
    """The principal may not do this on the topic; grant the permission or use another principal."""


class GroupAuthorizationError(AuthorizationError, code=ErrorCode.GROUP_AUTHORIZATION_FAILED):
    """The principal may not do this on the group; grant the permission or use another principal."""


class ClusterAuthorizationError(AuthorizationError, code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
    """The principal may not do this on the cluster; grant the permission or use another principal."""


class UnsupportedSaslMechanismError(AuthenticationError, code=ErrorCode.UNSUPPORTED_SASL_MECHANISM):
    """The broker does not offer this SASL mechanism; choose one it listed in its answer."""


class IllegalSaslStateError(AuthenticationError, code=ErrorCode.ILLEGAL_SASL_STATE):
    """This request is not allowed at this point of the authentication exchange."""


class UnsupportedVersionError(InvalidConfigurationError, code=ErrorCode.UNSUPPORTED_VERSION):
    """The broker does not speak this version of the request; choose one from its ApiVersions answer."""


class NotControllerError(RetriableError, code=ErrorCode.NOT_CONTROLLER):
    """This node is not the active controller; find the controller and ask it."""


class InvalidRequestError(ClientError, code=ErrorCode.INVALID_REQUEST):
    """The request is well formed but contradicts itself or the protocol; the broker's log says how."""


class PolicyViolationError(ClientError, code=ErrorCode.POLICY_VIOLATION):
    """The cluster's policy refuses the request."""


class TransactionalIdAuthorizationError(AuthorizationError, code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
    """The principal may not use this transactional id; grant the permission or use another principal."""


class SecurityDisabledError(ClientError, code=ErrorCode.SECURITY_DISABLED):
    """No authorizer is set up on this cluster, so there are no permissions to work on."""


class OperationNotAttemptedError(ClientError, code=ErrorCode.OPERATION_NOT_ATTEMPTED):
    """The operation was not tried, because one before it in the same request failed."""


class SaslAuthenticationError(AuthenticationError, code=ErrorCode.SASL_AUTHENTICATION_FAILED):
    """Authentication failed; check the credentials."""


class DelegationTokenDisabledError(ClientError, code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED):
    """Delegation tokens are not switched on in this cluster."""


class DelegationTokenNotFoundError(ClientError, code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
    """No such delegation token exists here; it may have been removed."""


class DelegationTokenOwnerMismatchError(ClientError, code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
    """Only the owner or a renewer of the delegation token may do this."""


class UnsupportedByAuthenticationError(ClientError, code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
    """Delegation tokens can be asked for only over an authenticated connection that was not itself opened with a token."""


class DelegationTokenAuthorizationError(AuthorizationError, code=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED):
    """The principal may not use this delegation token; grant the permission or use another principal."""


class DelegationTokenExpiredError(ClientError, code=ErrorCode.DELEGATION_TOKEN_EXPIRED):
    """The delegation token has expired; ask for a new one."""


class InvalidPrincipalTypeError(ClientError, code=ErrorCode.INVALID_PRINCIPAL_TYPE):
    """The principal type is not supported for this; use User."""


class StaleBrokerEpochError(ClientError, code=ErrorCode.STALE_BROKER_EPOCH):
    """The broker's registration has been replaced by a newer one of the same broker."""


class ResourceNotFoundError(ClientError, code=ErrorCode.RESOURCE_NOT_FOUND):
    """The resource named does not exist."""


class DuplicateResourceError(ClientError, code=ErrorCode.DUPLICATE_RESOURCE):
    """The resource exists already, or is named twice in the request."""


class UnacceptableCredentialError(ClientError, code=ErrorCode.UNACCEPTABLE_CREDENTIAL):
    """The credential is not allowed, for example because it has too few iterations."""


class InconsistentVoterSetError(ClientError, code=ErrorCode.INCONSISTENT_VOTER_SET):
    """Sender and receiver do not agree on who the voters of the quorum are; check their settings."""


class InvalidUpdateVersionError(ClientError, code=ErrorCode.INVALID_UPDATE_VERSION):
    """The feature version asked for is not allowed."""


class FeatureUpdateFailedError(ClientError, code=ErrorCode.FEATURE_UPDATE_FAILED):
    """The features could not be updated; the message says why."""


class PrincipalDeserializationError(ClientError, code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE):
    """The controller could not read the principal of a forwarded request; check that both sides build principals alike."""


class DuplicateBrokerRegistrationError(ClientError, code=ErrorCode.DUPLICATE_BROKER_REGISTRATION):
    """A broker with this id is registered and alive; give this one another node.id, or stop the other."""


class BrokerIdNotRegisteredError(ClientError, code=ErrorCode.BROKER_ID_NOT_REGISTERED):
    """No broker of this id is registered."""


class InconsistentClusterIdError(ClientError, code=ErrorCode.INCONSISTENT_CLUSTER_ID):
    """The other side belongs to a cluster with another cluster id; check the addresses and meta.properties."""


class MismatchedEndpointTypeError(ClientError, code=ErrorCode.MISMATCHED_ENDPOINT_TYPE):
    """The request was sent to a broker's endpoint but belongs to a controller's, or the other way round."""


class UnsupportedEndpointTypeError(ClientError, code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE):
    """This kind of endpoint is not supported here."""


class UnknownControllerIdError(ClientError, code=ErrorCode.UNKNOWN_CONTROLLER_ID):
    """The controller id is not known to the quorum."""


class UnknownSubscriptionIdError(ClientError, code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID):
    """The telemetry subscription has changed; ask for the current one, then push again."""


class TelemetryTooLargeError(ClientError, code=ErrorCode.TELEMETRY_TOO_LARGE):
    """The telemetry pushed is larger than telemetry.max.bytes; push less."""


class InvalidRegistrationError(ClientError, code=ErrorCode.INVALID_REGISTRATION):
    """The controller refuses the broker's registration; its log says what is wrong with it."""


class InvalidVoterKeyError(ClientError, code=ErrorCode.INVALID_VOTER_KEY):
    """The voter named is not the one the receiver is, by id and directory id."""


class DuplicateVoterError(ClientError, code=ErrorCode.DUPLICATE_VOTER):
    """The node is a voter already."""


class VoterNotFoundError(ClientError, code=ErrorCode.VOTER_NOT_FOUND):
    """No voter of this id and directory id exists."""


class RebootstrapRequiredError(ClientError, code=ErrorCode.REBOOTSTRAP_REQUIRED):
    """The client's metadata is too old to go on with; start again from the bootstrap servers."""
