"""The package as it is published: a wheel with types, and code that keeps to its own rules."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gate import REPOSITORY

PACKAGE = REPOSITORY / "clients/python"

SCRIPT = """
import sys
import toolgate

assert toolgate.__file__.startswith(sys.argv[1]), toolgate.__file__
with toolgate.Client() as client:
    print(client.tools.invoke("stripe", "charges.read", parameters={"charge_id": "ch_wheel"})["id"])
"""

TYPED = """
from toolgate import AsyncClient, Client, GrantedTool, TaskContext, Worker
from toolgate.exceptions import GrantScopeError

client = Client(server_url="http://127.0.0.1:7300", api_key="key")
tools: list[GrantedTool] = list(client.tools.list(service="stripe"))
client.tools.invoke("stripe", "charges.read", parameters={"charge_id": "ch_1"}, timeout=5)


@Worker(capabilities=["billing"])
def process(ctx: TaskContext) -> dict[str, str]:
    return {"name": ctx.task.name}


async def main() -> None:
    async with AsyncClient() as asynchronous:
        call = await asynchronous.tools.invoke_detached("stripe.charges.read")
        reveal_type(await call)


try:
    process.run(client)
except GrantScopeError as error:
    print(error.available_scopes[0].upper())
"""

WRONG = """
from toolgate import Client

Client().tools.invoke("stripe", "charges.read", parameter={"charge_id": "ch_1"})
Client().tools.list(service=7)
"""


def run(*command: object, cwd: Path = PACKAGE, **variables: str) -> str:
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=cwd, env=environment, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def mypy(*arguments: object, **options: Any) -> str:
    """Its cache stays: without it, the frameworks are checked for a minute."""
    return run("-m", "mypy", "--cache-dir", REPOSITORY / "target/mypy", *arguments, **options)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built and installed."""
    home = tmp_path_factory.mktemp("wheel")
    run("-m", "hatchling", "build", "-t", "wheel", "-d", home)
    (wheel,) = home.glob("*.whl")
    assert wheel.name == "toolgate-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        metadata = content.read("toolgate-0.1.0.dist-info/METADATA").decode()
    assert {"toolgate/py.typed", "toolgate/client.py", "toolgate/frameworks/openai.py"} <= names
    assert "toolgate-0.1.0.dist-info/licenses/LICENSE" in names
    assert not any(name.startswith("tests") for name in names)
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra" not in line]
    assert required == ["Requires-Dist: httpx<1,>=0.27"]
    target = home / "installed"
    run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel)
    return target


def test_the_installed_wheel_calls_a_tool(world, installed, tmp_path):
    variables = {"TOOLGATE_URL": world.gate.url, "TOOLGATE_TOKEN": world.agent()[1], "PYTHONPATH": str(installed)}
    assert run("-c", SCRIPT, installed, cwd=tmp_path, **variables) == "ch_wheel\n"


def test_the_types_of_the_installed_wheel_are_used(installed, tmp_path):
    (tmp_path / "typed.py").write_text(TYPED)
    found = mypy("--strict", "typed.py", cwd=tmp_path, MYPYPATH=str(installed))
    assert 'Revealed type is "Any"' in found
    (tmp_path / "wrong.py").write_text(WRONG)
    with pytest.raises(AssertionError, match='Unexpected keyword argument "parameter"') as refused:
        mypy("wrong.py", cwd=tmp_path, MYPYPATH=str(installed))
    assert 'incompatible type "int"' in str(refused.value)


def test_the_code_is_typed_strictly():
    mypy()


def test_the_code_is_formatted_and_free_of_findings():
    run("-m", "ruff", "check", "--no-cache", ".")
    run("-m", "ruff", "format", "--no-cache", "--check", ".")
