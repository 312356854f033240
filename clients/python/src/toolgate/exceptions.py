"""What can go wrong, one class for each thing that a program would handle differently. `CODES` and `STATUSES`
map the error codes of the gate to classes; `code` has the exact one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any


class ToolgateError(Exception):
    """The base of everything that this package raises about a request."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
        invocation_id: str | None = None,
        status_code: int | None = None,
        request_id: str | None = None,
        result: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """The code of the gate; `None` if there was no response."""
        self.details: Mapping[str, Any] = dict(details or {})
        """Members of the error besides code and message, such as `path` or `stage`."""
        self.invocation_id = invocation_id
        """The record of the call, if it has one."""
        self.status_code = status_code
        self.request_id = request_id
        """Under which the log of the gate has the request."""
        self.result = result
        """What the service returned, if the call was executed and failed."""

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]" if self.code else self.message

    @property
    def retry_after_seconds(self) -> float | None:
        """When a retry makes sense, if waiting alone helps."""
        seconds = self.details.get("retry_after_seconds")
        return seconds if isinstance(seconds, int | float) else None

    @property
    def grant_id(self) -> str | None:
        return self._text("grant_id")

    def _text(self, name: str) -> str | None:
        value = self.details.get(name)
        return value if isinstance(value, str) else None

    def _texts(self, name: str) -> Sequence[str]:
        value = self.details.get(name)
        return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()


class TransportError(ToolgateError):
    """There was no response. `sent` is false if the gate certainly received nothing. A call can be repeated with its
    `idempotency_key`: it is not executed twice."""

    def __init__(self, message: str, *, sent: bool = True, **more: Any) -> None:
        super().__init__(message, **more)
        self.sent = sent
        self.idempotency_key: str | None = None


class CallTimeoutError(TransportError, TimeoutError):
    """The call did not end in the time that was given. A detached call, which has an `invocation_id`, continues."""


class ResponseError(ToolgateError):
    """A response that the gate does not send, as from something else at this address."""


class AuthenticationError(ToolgateError):
    """The key is missing, unknown, revoked or expired."""


class PermissionDeniedError(ToolgateError):
    @property
    def required_permission(self) -> str | None:
        return self._text("required_permission")


class NotFoundError(ToolgateError):
    """There is no such object, or the caller may not see it."""


class ToolNotFoundError(NotFoundError):
    @property
    def available_scopes(self) -> Sequence[str]:
        """What the agent can do with the service, if it was a service."""
        return self._texts("available_scopes")


class ConflictError(ToolgateError):
    """Not possible in the present state."""

    @property
    def current_version(self) -> int | None:
        version = self.details.get("current_version")
        return version if isinstance(version, int) else None


class InvalidRequestError(ToolgateError):
    @property
    def path(self) -> str | None:
        """The field that is wrong."""
        return self._text("path")


class ParametersError(InvalidRequestError):
    """The parameters do not match the schema of the tool."""

    @property
    def rule(self) -> str | None:
        return self._text("rule")


class RateLimitError(ToolgateError):
    """Too many requests, calls or objects."""


class UnavailableError(ToolgateError):
    """The gate, or something that it needs, is not available now."""


class LedgerUnavailableError(UnavailableError):
    """The gate cannot record anything, so it does nothing."""


class InternalError(ToolgateError):
    """A bug in Toolgate."""


class GrantError(ToolgateError):
    """A grant does not allow it."""


class GrantScopeError(GrantError):
    """The agent does not hold the scope that the tool needs."""

    @property
    def available_scopes(self) -> Sequence[str]:
        return self._texts("available_scopes")

    @property
    def requested_scope(self) -> str | None:
        return self._text("requested_scope")


class GrantNotFoundError(GrantError, NotFoundError):
    pass


class GrantExpiredError(GrantError):
    pass


class GrantRevokedError(GrantError):
    pass


class GrantSuspendedError(GrantError):
    pass


class GrantRateLimitError(GrantError, RateLimitError):
    """The hourly limit of the grant is used up: see `retry_after_seconds`."""


class GrantParameterError(GrantError):
    """A parameter violates a constraint of the grant."""

    @property
    def path(self) -> str | None:
        return self._text("path")

    @property
    def rule(self) -> str | None:
        return self._text("rule")


class GrantContextError(GrantError):
    """The call does not belong to the intent, plan or task that the grant is bound to, or that task is not running."""


class GrantConstraintError(GrantError):
    """The cost, the host or the address of the call is outside the limits of the grant."""


class DelegationError(GrantError):
    """A delegation would be wider than its source."""


class InsufficientToolAccessError(ToolgateError):
    """The agent lacks tools that a task requires."""

    @property
    def missing(self) -> Sequence[Mapping[str, Any]]:
        """`service` and `scopes` of what is missing."""
        missing = self.details.get("missing")
        return tuple(missing) if isinstance(missing, list) else ()


class CredentialError(ToolgateError):
    """The credential behind the grant cannot be used."""


class BudgetExceededError(RateLimitError):
    """A budget has no room for the call. `retry_after_seconds` is that of a daily one; waiting changes no other."""

    @property
    def account(self) -> str | None:
        """Whose budget it is: of an agent, a tenant, a run or a coordinator, which `account_id` names."""
        return self._text("account")

    @property
    def account_id(self) -> str | None:
        return self._text("account_id")

    @property
    def limit(self) -> Decimal | None:
        """Calls, or US dollars."""
        return self._amount("limit")

    @property
    def used(self) -> Decimal | None:
        return self._amount("used")

    @property
    def remaining(self) -> Decimal | None:
        return self._amount("remaining")

    def _amount(self, name: str) -> Decimal | None:
        unit = {"calls": "calls", "cost": "cost_usd"}.get(self._text("limit") or "", "")
        amount = self.details.get(f"{name}_{unit}")
        return Decimal(str(amount)) if isinstance(amount, int | float) else None


class GuardrailError(ToolgateError):
    """A guardrail of a coordinator forbids the call."""


class StoppedError(ToolgateError):
    """An operator has stopped the agent, its tenant or the gate."""


class ApprovalError(ToolgateError):
    """The call needs an approval and has none. Nothing was executed."""

    @property
    def approval_id(self) -> str | None:
        return self._text("approval_id")


class ApprovalDeniedError(ApprovalError):
    """An approver denied the call; the message has the reason."""

    @property
    def denied_by(self) -> str | None:
        return self._text("denied_by")


class ApprovalTimedOutError(ApprovalError):
    pass


class ApprovalCancelledError(ApprovalError):
    pass


class ApprovalRequiredError(ApprovalError):
    """No approver can be asked, or the call is not the one that was approved."""


class PolicyDeniedError(ToolgateError):
    """A policy rule refuses the call or its result; the message is the reason of the rule."""

    @property
    def policy_id(self) -> str | None:
        return self._text("policy_id")


class GuardianDeniedError(ToolgateError):
    """A guardian refuses the call or its result."""


class GuardianUnavailableError(UnavailableError):
    """A guardian gave no usable verdict."""


class CallCancelledError(ToolgateError):
    """The call was cancelled before it was executed."""


class CallError(ToolgateError):
    """The call was admitted and failed. `result` has what the service returned."""

    @property
    def http_status(self) -> int | None:
        status = self.details.get("http_status")
        return status if isinstance(status, int) else None

    @property
    def timed_out(self) -> bool:
        return self.details.get("timed_out") is True


class ToolProxyError(CallError):
    """The service could not be reached."""


class ServiceError(CallError):
    """The service responded with an error."""


class OutcomeUnknownError(ToolgateError):
    """The call was admitted, and it is unknown whether the service executed it. Check there before it is repeated."""


class ResultGoneError(ToolgateError):
    """The result of the call is not stored, or no longer."""


CODES: Mapping[str, type[ToolgateError]] = {
    "APPROVAL_CANCELLED": ApprovalCancelledError,
    "APPROVAL_DENIED": ApprovalDeniedError,
    "APPROVAL_ENDED": ConflictError,
    "APPROVAL_REQUIRED": ApprovalRequiredError,
    "APPROVAL_TIMED_OUT": ApprovalTimedOutError,
    "BODY_TOO_LARGE": InvalidRequestError,
    "BUDGET_EXCEEDED": BudgetExceededError,
    "CALL_ABANDONED": OutcomeUnknownError,
    "CALL_CANCELLED": CallCancelledError,
    "CREDENTIAL_DAMAGED": CredentialError,
    "CREDENTIAL_EXPIRED": CredentialError,
    "CREDENTIAL_REVOKED": CredentialError,
    "DELEGATION_DEPTH_EXCEEDED": DelegationError,
    "GRANT_CONSTRAINT_EXCEEDED": DelegationError,
    "GRANT_CONTEXT_MISMATCH": GrantContextError,
    "GRANT_COST_EXCEEDED": GrantConstraintError,
    "GRANT_EXPIRED": GrantExpiredError,
    "GRANT_EXPIRY_EXCEEDED": DelegationError,
    "GRANT_HOST_DENIED": GrantConstraintError,
    "GRANT_NETWORK_DENIED": GrantConstraintError,
    "GRANT_NOT_DELEGATABLE": DelegationError,
    "GRANT_NOT_FOUND": GrantNotFoundError,
    "GRANT_PARAMETER_DENIED": GrantParameterError,
    "GRANT_RATE_LIMITED": GrantRateLimitError,
    "GRANT_REVOKED": GrantRevokedError,
    "GRANT_SCOPE_INSUFFICIENT": GrantScopeError,
    "GRANT_SUSPENDED": GrantSuspendedError,
    "GUARDIAN_DENIED": GuardianDeniedError,
    "GUARDIAN_FAILED": GuardianUnavailableError,
    "GUARDIAN_TIMED_OUT": GuardianUnavailableError,
    "GUARDRAIL_DENIED": GuardrailError,
    "INPUT_REQUIRED": CallError,
    "INSUFFICIENT_TOOL_ACCESS": InsufficientToolAccessError,
    "INTERNAL_ERROR": InternalError,
    "LEDGER_ROLLED_BACK": LedgerUnavailableError,
    "LEDGER_UNAVAILABLE": LedgerUnavailableError,
    "METHOD_NOT_ALLOWED": InvalidRequestError,
    "MOUNT_FAILED": CallError,
    "OUTCOME_UNKNOWN": OutcomeUnknownError,
    "PARAMETERS_INVALID": ParametersError,
    "PEER_RESPONSE_INVALID": ServiceError,
    "POLICY_DENIED": PolicyDeniedError,
    "POLICY_UNEVALUABLE": PolicyDeniedError,
    "PROXY_ERROR": ToolProxyError,
    "RESULT_GONE": ResultGoneError,
    "RESULT_NOT_KEPT": ResultGoneError,
    "SERVICE_ERROR": ServiceError,
    "STOPPED": StoppedError,
    "TOOL_NOT_FOUND": ToolNotFoundError,
    "UNSUPPORTED_MEDIA_TYPE": InvalidRequestError,
    "VERSION_REQUIRED": InvalidRequestError,
}
"""The classes of error codes whose status does not say enough. All others become the class of their status."""

STATUSES: Mapping[int, type[ToolgateError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    429: RateLimitError,
    503: UnavailableError,
}
"""The classes of all other codes, those of later versions of the gate included."""


def class_of(code: str | None, status: int) -> type[ToolgateError]:
    return CODES.get(code or "") or STATUSES.get(status, ToolgateError)
