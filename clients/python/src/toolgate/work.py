"""Tasks of RFC-0012, as the gate returns them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal

TaskStatus = Literal["pending", "ready", "claimed", "running", "blocked", "completed", "failed", "cancelled", "skipped"]
TaskPriority = Literal["low", "normal", "high", "critical"]
LeaseStatus = Literal["active", "released", "expired", "revoked"]

PRIORITIES: tuple[TaskPriority, ...] = ("critical", "high", "normal", "low")


@dataclass(frozen=True)
class ToolRequirement:
    """Access that a task needs."""

    SCHEMA: ClassVar = "ToolRequirement"

    service: str
    scopes: tuple[str, ...] = ()
    required: bool = True
    """Without it, the task can be claimed all the same."""


@dataclass(frozen=True)
class MissingTool:
    SCHEMA: ClassVar = "MissingTool"

    service: str
    scopes: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """A unit of work."""

    SCHEMA: ClassVar = "Task"

    id: str
    intent_id: str
    plan_id: str | None
    name: str
    description: str | None
    version: int
    status: TaskStatus
    priority: TaskPriority
    input: dict[str, Any]
    output: dict[str, Any] | None
    artifacts: tuple[str, ...]
    assigned_agent: str | None
    lease_id: str | None
    capabilities_required: tuple[str, ...]
    depends_on: tuple[str, ...]
    blocks: tuple[str, ...]
    parent_task_id: str | None
    requires_tools: tuple[ToolRequirement, ...]
    timeout_seconds: int | None
    deadline: datetime | None
    attempt: int
    max_attempts: int
    blocked_reason: str | None
    error: str | None
    metadata: dict[str, Any]
    created_by: str
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    optional_missing: tuple[MissingTool, ...] = ()
    """Tools that the task could use and the agent lacks. Only in the reply to a claim."""


@dataclass(frozen=True)
class Lease:
    """The right of an agent to a part of an intent, such as a task."""

    SCHEMA: ClassVar = "Lease"

    id: str
    intent_id: str
    task_id: str | None
    agent_id: str
    scope: str
    status: LeaseStatus
    created_at: datetime
    expires_at: datetime
    released_at: datetime | None
