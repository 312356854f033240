"""Connections that are cut at the worst moment: when the service was called, and the client does not know."""

from __future__ import annotations

import socket
import threading
from urllib.parse import urlsplit

import pytest

from toolgate import Retry
from toolgate.exceptions import ConflictError, TransportError


class CuttingProxy:
    """Passes requests on to a gate, and cuts the connections of the first calls once they have reached the service."""

    def __init__(self, gate: str, arrived: threading.Semaphore, cuts: int) -> None:
        self.gate = urlsplit(gate)
        self.arrived = arrived
        self.cuts = cuts
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client, socket.create_connection((self.gate.hostname, self.gate.port)) as upstream:
                request = read_request(client)
                upstream.sendall(request.replace(b"Connection: keep-alive", b"Connection: close"))
                if self.cuts > 0 and b"/tools/invoke" in request:
                    self.cuts -= 1
                    self.arrived.acquire()
                    continue
                while received := upstream.recv(65536):
                    client.sendall(received)

    def stop(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


def read_request(client: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += client.recv(65536)
    head, body = received.split(b"\r\n\r\n", 1)
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    missing = int(lengths[0]) - len(body) if lengths else 0
    while missing > 0:
        more = client.recv(missing)
        received, missing = received + more, missing - len(more)
    return received


@pytest.fixture
def cut(world):
    """The address of a proxy that cuts so many calls."""
    made = []

    def start(cuts: int) -> str:
        while world.service.arrived.acquire(blocking=False):
            pass
        made.append(CuttingProxy(world.gate.url, world.service.arrived, cuts))
        return made[-1].url

    yield start
    for proxy in made:
        proxy.stop()


CHARGE = {"parameters": {"amount": 4711, "currency": "eur"}}


@pytest.mark.parametrize("options", [{}, {"on_pending": print}], ids=["plain", "lines"])
def test_a_call_whose_connection_is_cut_is_executed_once(world, connect, cut, options):
    client = connect(world.agent()[1], server_url=cut(1), retry=Retry())
    before = len(world.service.received)
    called = client.tools.call("stripe", "charges.create", **CHARGE, **options)
    assert called.result["amount"] == 4711
    assert len(world.service.received) == before + 1
    record = world.admin.ask("GET", f"/invocations/{called.invocation_id}")
    assert record["status"] == "success"


def test_what_was_not_repeated_can_be_repeated_by_the_caller(world, connect, cut):
    key = world.agent()[1]
    client = connect(key, server_url=cut(1), retry=Retry(attempts=1))
    before = len(world.service.received)
    with pytest.raises(TransportError) as lost:
        client.tools.call("stripe", "charges.create", **CHARGE)
    assert lost.value.sent
    # The call may still be in flight: then the gate says when to come again.
    again, options = connect(key), {**CHARGE, "idempotency_key": lost.value.idempotency_key}
    called = until_settled(lambda: again.tools.call("stripe", "charges.create", **options))
    assert called.result["amount"] == 4711
    assert len(world.service.received) == before + 1


def until_settled(call):
    while True:
        try:
            return call()
        except ConflictError as error:
            if error.code != "IDEMPOTENCY_IN_PROGRESS":
                raise
