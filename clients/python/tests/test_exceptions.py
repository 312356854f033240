"""What exceptions say, for refusals that take much to provoke."""

from __future__ import annotations

from decimal import Decimal

import pytest

from toolgate import exceptions
from toolgate._errors import error_from
from toolgate._http import Response


def error(status: int, code: str, **details: object) -> exceptions.ToolgateError:
    body = {"status": "denied", "error": {"code": code, "message": "no", **details}, "invocation_id": "inv_1"}
    return error_from(status, body, Response(status, {"x-request-id": "req-1"}, b""))


def test_a_budget_says_whose_it_is_and_what_is_left():
    found = error(
        429,
        "BUDGET_EXCEEDED",
        account="agent",
        account_id="clerk",
        period="2026-03-08",
        limit="cost",
        limit_cost_usd=1.5,
        used_cost_usd=1.49,
        remaining_cost_usd=0.01,
        retry_after_seconds=60,
    )
    assert isinstance(found, exceptions.BudgetExceededError)
    assert (found.account, found.account_id, found.retry_after_seconds) == ("agent", "clerk", 60)
    assert (found.limit, found.used, found.remaining) == (Decimal("1.5"), Decimal("1.49"), Decimal("0.01"))
    calls = error(403, "BUDGET_EXCEEDED", account="coordinator", limit="calls", limit_calls=10, used_calls=10)
    assert isinstance(calls, exceptions.BudgetExceededError)
    assert (calls.limit, calls.used, calls.remaining, calls.retry_after_seconds) == (10, 10, None, None)


def test_missing_access_is_listed():
    missing = [{"service": "stripe", "scopes": ["charges.create"]}]
    found = error(403, "INSUFFICIENT_TOOL_ACCESS", missing=missing)
    assert isinstance(found, exceptions.InsufficientToolAccessError)
    assert list(found.missing) == missing


def test_a_conflict_has_the_current_version():
    found = error(409, "VERSION_CONFLICT", current_version=7)
    assert isinstance(found, exceptions.ConflictError)
    assert found.current_version == 7


def test_every_exception_has_what_is_known_of_its_request():
    for code, kind in exceptions.CODES.items():
        found = error(403, code, stage="guard")
        assert type(found) is kind
        assert (found.code, found.message, found.status_code) == (code, "no", 403)
        assert (found.invocation_id, found.request_id, found.details["stage"]) == ("inv_1", "req-1", "guard")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, exceptions.AuthenticationError),
        (404, exceptions.NotFoundError),
        (409, exceptions.ConflictError),
        (429, exceptions.RateLimitError),
        (503, exceptions.UnavailableError),
        (418, exceptions.ToolgateError),
    ],
)
def test_a_code_of_a_later_gate_has_the_class_of_its_status(status, kind):
    found = error(status, "SOMETHING_NEW")
    assert type(found) is kind
    assert found.code == "SOMETHING_NEW"


def test_details_of_other_types_are_not_taken_for_texts():
    found = error(403, "GRANT_SCOPE_INSUFFICIENT", available_scopes="charges.read", requested_scope=7)
    assert isinstance(found, exceptions.GrantScopeError)
    assert (list(found.available_scopes), found.requested_scope) == ([], None)
