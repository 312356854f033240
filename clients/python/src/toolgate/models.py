"""What the gate returns, as immutable values. Each class names the schema of the OpenAPI document that it is made from;
a test compares them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Literal

GrantSource = Literal["direct", "delegated"]
GrantStatus = Literal["active", "suspended", "revoked", "expired"]
SafetyTier = Literal["pure", "read", "write", "exec"]
ApprovalNeed = Literal["never", "conditional", "always"]
DetachedStatus = Literal["pending", "waiting", "running", "finished"]


@dataclass(frozen=True)
class Context:
    """What a grant is bound to. An absent part binds nothing."""

    SCHEMA: ClassVar = "Context"

    intent_id: str | None = None
    plan_id: str | None = None
    task_id: str | None = None


@dataclass(frozen=True)
class GrantedTool:
    """A tool that the agent may call, and the grant that allows it."""

    SCHEMA: ClassVar = "GrantedTool"

    grant_id: str
    service: str
    tool: str
    name: str
    """The name to call it by: service and tool."""
    alias: str
    """A name of letters, digits, `_` and `-` only, which models and `invoke` take as well."""
    version: str | None
    tool_id: str | None
    scope: str
    description: str | None
    parameters: dict[str, Any] | None
    """JSON Schema 2020-12; `None` if there is none."""
    safety_tier: SafetyTier
    approval: ApprovalNeed | None
    required_scopes: tuple[str, ...] | None
    constraints: dict[str, Any]
    source: GrantSource
    context: Context
    expires_at: datetime | None
    metadata: dict[str, Any]
    """`environment`, if the metadata of the credential has it."""
    delegated_from: str | None = None
    """The agent that delegated it."""


@dataclass(frozen=True)
class Grant:
    """The authority of an agent over some scopes of one credential."""

    SCHEMA: ClassVar = "Grant"

    id: str
    agent_id: str
    service: str
    credential_id: str
    granted_by: str
    scopes: tuple[str, ...]
    constraints: dict[str, Any]
    context: Context
    source: GrantSource
    source_grant_id: str | None
    status: GrantStatus
    """Of the grant itself; `effective_status` follows from its lineage."""
    effective_status: GrantStatus
    delegatable: bool
    delegation_depth: int | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    suspended_at: datetime | None
    effective: EffectiveAuthority
    metadata: dict[str, Any] = field(default_factory=dict)
    """`environment`, if the metadata of the credential has it and the grant allows a tool."""


@dataclass(frozen=True)
class EffectiveAuthority:
    """What a grant really allows: the meet along its lineage."""

    SCHEMA: ClassVar = "EffectiveAuthority"

    scopes: tuple[str, ...]
    constraints: dict[str, Any]
    context: Context
    delegatable: bool
    delegation_depth: int | None
    expires_at: datetime | None


@dataclass(frozen=True)
class Cost:
    """The estimated cost of a call."""

    SCHEMA: ClassVar = "Cost"

    api_units: int
    estimated_cost_usd: Decimal | None


@dataclass(frozen=True)
class CallResult:
    """A call that succeeded."""

    SCHEMA: ClassVar = "CallAnswer"

    invocation_id: str
    tool_name: str
    grant_id: str | None
    result: Any
    """What the service returned."""
    cost: Cost
    duration_ms: int
    timestamp: datetime
    replayed: bool = False
    """This is the stored response of an earlier call with the same idempotency key."""
    truncated: bool = False
    """The service returned more than the gate passes on."""


@dataclass(frozen=True)
class DetachedState:
    """A call that outlives its connection."""

    SCHEMA: ClassVar = "DetachedCall"

    invocation_id: str
    agent_id: str
    tool_name: str
    status: DetachedStatus
    approval_ids: tuple[str, ...]
    cancelled: bool
    idempotency_key: str | None
    timestamp: datetime
    finished_at: datetime | None
    url: str


@dataclass(frozen=True)
class PendingApproval:
    """What a call waits for: the argument of `on_pending`."""

    approval_id: str
    tool: str
    url: str
    """Where it can be read, and decided by an approver: `POST {url}/decide`."""
    description: str | None = None
    """What the call does, on one line."""
    arguments: Mapping[str, Any] | None = None
    reasons: tuple[Mapping[str, Any], ...] = ()
    """Why an approval is required."""
    expires_at: datetime | None = None
    invocation_id: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The whole approval, as `GET {url}` returns it."""
