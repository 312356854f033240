"""A gate in a process of its own, and a service behind it, for the tests of this package."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

REPOSITORY = Path(__file__).resolve().parents[3]
TOKEN = "token-of-the-test-administrator"
SECRET = "sk_live_of_the_python_client_77"


def binary() -> Path:
    """The binary that `cargo xtask test` has built."""
    found = Path(os.environ.get("TOOLGATE_BINARY", REPOSITORY / "target/debug/toolgate"))
    assert found.exists(), f"{found} does not exist: run cargo build, or set TOOLGATE_BINARY"
    return found


class Gate:
    """`toolgate serve` on a directory of its own and a port that the system chooses."""

    def __init__(self, home: Path, **variables: str) -> None:
        environment = {
            "HOME": str(home),
            "PATH": os.environ.get("PATH", ""),
            "TOOLGATE_ADMIN_TOKEN": TOKEN,
            "TOOLGATE_EGRESS_ALLOW": "127.0.0.1/32",
            "TOOLGATE_LAME_DUCK_SECONDS": "0",
            **variables,
        }
        command = [str(binary()), "serve", "--data", str(home / "data"), "--listen", "127.0.0.1:0"]
        self.log = (home / "log").open("w")
        self.process = subprocess.Popen(command, env=environment, cwd=home, stdout=subprocess.PIPE, stderr=self.log)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            text = line.decode()
            if text.startswith("toolgate listening on "):
                self.url = text.split()[-1]
                break
        else:
            raise AssertionError((home / "log").read_text())
        self.admin = Admin(self.url, TOKEN)

    def stop(self) -> None:
        self.admin.http.close()
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()


class Admin:
    """Requests of an administrator, or of anybody else with a key, without the package that is tested."""

    def __init__(self, url: str, key: str) -> None:
        self.http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, trust_env=False, timeout=60)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> dict:
        response = self.http.request(method, f"/api/v1{path}", json=body, headers=headers)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json()

    def agent(self, name: str, kind: str = "agent", permissions: list[str] | None = None, **more: object) -> str:
        """Creates a principal and returns a key of it."""
        body = {"id": name, "kind": kind, "permissions": permissions or ["tools.invoke"], **more}
        self.ask("POST", "/agents", body)
        return self.ask("POST", f"/agents/{name}/keys")["key"]

    def grant(self, credential: str, agent: str, scopes: list[str], **more: object) -> str:
        body = {"credential_id": credential, "agent_id": agent, "scopes": scopes, **more}
        return self.ask("POST", "/grants", body)["id"]

    def decide(self, approval: str, decision: str, reason: str | None = None) -> None:
        self.ask("POST", f"/approvals/{approval}/decide", {"decision": decision, "reason": reason})

    def service(self, definition: dict, url: str, scopes: list[str]) -> str:
        """Registers a service and returns a credential for it."""
        self.ask("POST", "/services", definition)
        return self.credential(definition, url, scopes)

    def credential(self, definition: dict, url: str, scopes: list[str], **metadata: str) -> str:
        vault = self.ask("POST", "/vaults", {"name": definition["service"]})["id"]
        body = {
            "service": definition["service"],
            "label": "test",
            "auth_type": "bearer_token",
            "scopes_available": scopes,
            "metadata": {"base_url": url, "account_id": "acct_1", **metadata},
            "material": {"token": SECRET},
        }
        return self.ask("POST", f"/vaults/{vault}/credentials", body)["id"]


class Service:
    """A payments service on loopback, which records its requests and can hold its responses back."""

    def __init__(self) -> None:
        self.received: list[tuple[str, str, dict]] = []
        self.arrived = threading.Semaphore(0)
        self.open = threading.Event()
        self.open.set()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.handle_request({})

            def do_POST(self) -> None:
                self.handle_request(json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}"))

            def handle_request(self, body: dict) -> None:
                service.received.append((self.command, self.path, body))
                service.arrived.release()
                service.open.wait()
                assert self.headers["Authorization"] == f"Bearer {SECRET}"
                status, reply = 200, {"id": self.path.rsplit("/", 1)[-1], "currency": "usd"}
                if self.path.startswith("/v1/broken"):
                    status, reply = 422, {"problem": "no such thing"}
                elif self.command == "POST":
                    status, reply = 201, {"id": f"ch_{len(service.received)}", "echo": SECRET, **body}
                content = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def stop(self) -> None:
        self.open.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def stripe() -> dict:
    """The definition of the payments service."""
    amount = {"type": "integer", "minimum": 1, "required": True, "description": "In cents"}
    create = {
        "description": "Charge a card",
        "parameters": {"amount": amount, "currency": {"type": "string", "enum": ["usd", "eur"], "required": True}},
        "estimated_cost_usd": 0.02,
        "http": {"method": "POST", "path": "/v1/charges", "success": [201]},
    }
    read = {
        "description": "Look at a charge",
        "parameters": {"charge_id": {"type": "string", "required": True}},
        "idempotent": True,
        "http": {"method": "GET", "path": "/v1/charges/{charge_id}"},
    }
    transfer = {
        **create,
        "description": "Send money",
        "approval": "always",
        "http": {"method": "POST", "path": "/v1/transfers", "success": [201]},
    }
    return {
        "service": "stripe",
        "version": "1",
        "tools": {
            "charges.create": create,
            "charges.read": read,
            "refunds.create": {**create, "http": {"method": "POST", "path": "/v1/refunds", "success": [201]}},
            "broken.read": {"http": {"method": "GET", "path": "/v1/broken"}},
            "transfers.create": transfer,
            "transfers.brief": {**transfer, "approval_rule": {"ttl_seconds": 1}},
            "transfers.later": {**transfer, "detach": True},
        },
    }


SCOPES = sorted(stripe()["tools"])
