"""Toolgate: agents call tools by name and never hold a credential.

from toolgate import Client

client = Client(server_url="http://127.0.0.1:7300", api_key="tgk_...")
charge = client.tools.invoke("stripe", "charges.read", parameters={"charge_id": "ch_abc123"})
"""

from ._calls import CallOptions
from ._progress import OnPending
from ._retry import Retry
from .client import AsyncClient, Client
from .detached import AsyncDetachedCall, DetachedCall
from .exceptions import ToolgateError
from .frameworks.toolset import AsyncToolset, Toolset
from .models import CallResult, Context, Cost, DetachedState, EffectiveAuthority, Grant, GrantedTool, PendingApproval
from .tools import AsyncTools, Tools
from .work import Task, ToolRequirement
from .worker import AsyncTaskContext, TaskContext, Worker

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncDetachedCall",
    "AsyncTaskContext",
    "AsyncTools",
    "AsyncToolset",
    "CallOptions",
    "CallResult",
    "Client",
    "Context",
    "Cost",
    "DetachedCall",
    "DetachedState",
    "EffectiveAuthority",
    "Grant",
    "GrantedTool",
    "OnPending",
    "PendingApproval",
    "Retry",
    "Task",
    "TaskContext",
    "ToolRequirement",
    "ToolgateError",
    "Tools",
    "Toolset",
    "Worker",
]
