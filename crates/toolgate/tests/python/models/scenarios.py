"""The official clients of OpenAI and of Anthropic, unmodified, sync and async, plain and streamed, against a provider that
plays a script: directly, and through the gate. Called with the name of a scenario; prints "NAME: done".

TOOLGATE_URL, ADMIN_KEY and TOOLGATE_BINARY are of the gate; GUARDIAN_URL, where it is set, is of a guardian that it asks.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import anthropic
import httpx2
import openai
from provider import Provider

URL, ADMIN, BINARY = os.environ["TOOLGATE_URL"], os.environ["ADMIN_KEY"], os.environ["TOOLGATE_BINARY"]
GUARDIAN = os.environ.get("GUARDIAN_URL")
SECRET = "sk-of-the-provider-4f9a2c71b83e60d5"
PRICES = {"large": {"input": "3", "output": "15", "cache_read": "0.3"}, "small": {"input": 1, "output": 2}}
# 600 tokens at 3, 400 at 0.3 and 50 at 15 millionths of a dollar.
COST = (600 * 3 + 400 * 0.3 + 50 * 15) / 1_000_000
APIS = ["chat", "responses", "messages"]
TOOL_NAMES = ["look", "erase"]
LIMIT = 0.06


def api(method, path, body=None, key=ADMIN):
    with httpx2.Client(base_url=URL, headers={"Authorization": f"Bearer {key}"}, trust_env=False) as client:
        response = client.request(method, path, json=body)
        assert response.is_success, (method, path, response.status_code, response.text)
        return response.json() if response.content else None


def command(*arguments):
    environment = {"HOME": tempfile.gettempdir(), "TOOLGATE_URL": URL, "TOOLGATE_TOKEN": ADMIN}
    done = subprocess.run([BINARY, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


class World:
    """A gate with a provider under both APIs, and an agent that may use it."""

    def __init__(self, constraints=None, fail_over=False, agent="writer"):
        self.provider, self.second = Provider(), Provider()
        self.vault = api("POST", "/api/v1/vaults", {"name": "providers"})["id"]
        prices = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump(PRICES, prices)
        prices.flush()
        self.agent = agent
        api("POST", "/api/v1/agents", {"id": agent, "permissions": ["tools.invoke"]})
        self.key = api("POST", f"/api/v1/agents/{agent}/keys", {})["key"]
        for name, dialect in [("openai", "openai"), ("anthropic", "anthropic")]:
            others = [f"{name}-second"] if fail_over else []
            for service, provider, further in [(name, self.provider, others), *[(o, self.second, []) for o in others]]:
                base = provider.url if dialect == "openai" else provider.url.removesuffix("/v1")
                terms = [term for other in further for term in ("--fail-over", other)]
                command(
                    "provider", "add", service, "--dialect", dialect, "--base-url", base, "--prices", prices.name,
                    "--model", "large", "--model", "small", *terms,
                )
                self.credential(service, dialect, constraints)

    def credential(self, service, dialect, constraints):
        metadata = {} if dialect == "openai" else {"auth": {"location": "header", "header_name": "x-api-key"}}
        kind, field = ("bearer_token", "token") if dialect == "openai" else ("api_key", "api_key")
        made = api("POST", f"/api/v1/vaults/{self.vault}/credentials", {
            "service": service, "label": service, "auth_type": kind, "metadata": metadata,
            "scopes_available": ["models.call"], "material": {field: SECRET},
        })
        api("POST", "/api/v1/grants", {
            "credential_id": made["id"], "agent_id": self.agent, "scopes": ["models.call"],
            **({"constraints": constraints} if constraints else {}),
        })

    def client(self, kind, direct=False, asynchronous=False, **more):
        """A client of this API; it retries as it does by default."""
        if kind == "messages":
            make = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
            base = self.provider.url.removesuffix("/v1") if direct else f"{URL}/llm/anthropic"
        else:
            make = openai.AsyncOpenAI if asynchronous else openai.OpenAI
            base = self.provider.url if direct else f"{URL}/llm/openai/v1"
        return make(base_url=base, api_key=SECRET if direct else self.key, **more)

    def spent(self):
        """What the calls of the agent have cost, as the log says."""
        calls = api("GET", f"/api/v1/invocations?agent_id={self.agent}&limit=200")["invocations"]
        return [call for call in calls if call["status"] in ("success", "error")]


def cost_of(call):
    return call["cost"]["estimated_cost_usd"]


def request(kind, text, model="large", tools=False, **more):
    """The arguments of a request that says this."""
    if tools:
        schema = {"type": "object", "properties": {}}
        if kind == "messages":
            more["tools"] = [{"name": name, "input_schema": schema} for name in TOOL_NAMES]
        elif kind == "chat":
            more["tools"] = [{"type": "function", "function": {"name": n, "parameters": schema}} for n in TOOL_NAMES]
        else:
            more["tools"] = [{"type": "function", "name": n, "parameters": schema, "strict": False} for n in TOOL_NAMES]
    if kind == "responses":
        return {"model": model, "input": text, "max_output_tokens": 100, **more}
    cap = "max_tokens" if kind == "messages" else "max_completion_tokens"
    return {"model": model, "messages": [{"role": "user", "content": text}], cap: 100, **more}


def resource(client, kind):
    return {"chat": lambda: client.chat.completions, "responses": lambda: client.responses}.get(
        kind, lambda: client.messages
    )()


def dump(value):
    return json.loads(value.model_dump_json())


def ask(client, kind, text, stream=False, **more):
    """The answer, or all events of it."""
    answer = resource(client, kind).create(**request(kind, text, **more), stream=stream)
    return [dump(event) for event in answer] if stream else dump(answer)


async def ask_async(client, kind, text, stream=False, **more):
    answer = await resource(client, kind).create(**request(kind, text, **more), stream=stream)
    return [dump(event) async for event in answer] if stream else dump(answer)


def received(kind, events):
    """The text of events."""
    text = ""
    for event in events:
        if kind == "chat":
            text += "".join(choice["delta"].get("content") or "" for choice in event["choices"])
        elif kind == "responses":
            text += event["delta"] if event["type"] == "response.output_text.delta" else ""
        else:
            text += (event.get("delta") or {}).get("text") or "" if event["type"] == "content_block_delta" else ""
    return text


def failing(call):
    """The error that a client raises."""
    try:
        value = call()
    except (openai.APIError, anthropic.APIError) as error:
        return error
    raise AssertionError(f"no error but {value}")


def streamed_until_error(client, kind, text, **more):
    """The events up to an error, and the error."""
    events = []

    def run():
        for event in resource(client, kind).create(**request(kind, text, **more), stream=True):
            events.append(dump(event))
        return events

    return events, failing(run)


def follow(*rules):
    with httpx2.Client(trust_env=False) as client:
        client.post(f"{GUARDIAN}/control/rules", json=list(rules)).raise_for_status()


def allowed():
    """Through the gate everything is as it is without it."""
    world = World()
    texts = ["say Hello there. How are you?\nFine!", 'call look {"at": "the sky"}', 'both look {"at": "the sky"}', "unusual"]
    for kind in APIS:
        direct, through = world.client(kind, direct=True), world.client(kind)
        asynchronous = world.client(kind, asynchronous=True)
        for text in texts:
            for stream in (False, True):
                expected = ask(direct, kind, text, stream)
                assert ask(through, kind, text, stream) == expected, (kind, text, stream)
                got = asyncio.run(ask_async(world.client(kind, asynchronous=True), kind, text, stream))
                assert got == expected, (kind, text, stream)
        del asynchronous
    helpers(world)
    world.provider.take()
    for kind in APIS:
        world.client(kind, default_headers={"Cookie": "c=1", "OpenAI-Organization": "org", "X-Custom": "x"}).with_options()
        ask(world.client(kind, default_headers={"Cookie": "c=1", "X-Custom": "x"}), kind, "say hi")
        [(path, headers, body)] = world.provider.take()
        headers = {name.lower(): value for name, value in headers.items()}
        assert world.key not in json.dumps(headers), headers
        key = headers["x-api-key"] if kind == "messages" else headers["authorization"].removeprefix("Bearer ")
        assert key == SECRET and ("authorization" in headers) == (kind != "messages"), headers
        unknown = set(headers) - {
            "accept", "accept-encoding", "anthropic-version", "authorization", "content-length", "content-type", "host",
            "traceparent", "tracestate", "user-agent", "x-api-key",
        }
        assert not unknown, unknown
        assert body.get("store", False) is False and body["model"] == "large", body
    prompt = world.client("messages").messages.count_tokens(model="large", messages=[{"role": "user", "content": "hello"}])
    assert prompt.input_tokens == 12
    tokens = world.client("responses").responses.input_tokens.count(model="large", input="hello")
    assert tokens.input_tokens == 12


def helpers(world):
    """The helper classes of both clients read the streams."""
    with world.client("messages").messages.stream(**request("messages", "say One. Two.")) as stream:
        assert "".join(stream.text_stream) == "One. Two."
        assert stream.get_final_message().usage.output_tokens == 50
    with world.client("responses").responses.stream(**request("responses", "say One. Two.")) as stream:
        assert stream.get_final_response().output_text == "One. Two."
    with world.client("chat").chat.completions.stream(**request("chat", "say One. Two.")) as stream:
        assert stream.get_final_completion().choices[0].message.content == "One. Two."


def refused():
    """What is refused reaches no provider, is said in the words of the client's vendor, and is not tried again."""
    world = World({"allowed_parameters": {"model": ["large"]}})
    for kind in APIS:
        client = world.client(kind)
        not_there = openai.NotFoundError if kind != "messages" else anthropic.NotFoundError
        messages = set()
        for call in [
            lambda: ask(client, kind, "say x", model="small"),
            lambda: ask(client, kind, "say x", model="unheard-of"),
            lambda: ask(client, kind, "say x", stream=True, model="small"),
            lambda: ask(client.with_options(base_url=str(client.base_url).replace("openai", "nobody").replace("anthropic", "nobody")), kind, "say x"),
            lambda: client.get("/v1/files" if kind == "messages" else "/files", cast_to=object),
            lambda: client.post("/v1/messages/batches" if kind == "messages" else "/batches", cast_to=object, body={}),
        ]:
            error = failing(call)
            assert isinstance(error, not_there), (kind, error)
            messages.add(json.dumps({**error.body, "request_id": None}) if kind == "messages" else json.dumps(error.body))
        assert len(messages) == 1, messages
        hosted = {
            "chat": {"web_search_options": {}},
            "responses": {"tools": [{"type": "mcp", "server_label": "x", "server_url": "https://evil.test"}]},
            "messages": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        }[kind]
        error = failing(lambda: ask(client, kind, "say x", extra_body=hosted))
        assert error.status_code == 400 and "runs at the provider" in str(error), error
        error = failing(lambda: ask(client, kind, "say x", extra_body={"base_url": "https://evil.test"}))
        assert error.status_code == 400 and "base_url" in str(error), error
    for more in [{"background": True}, {"previous_response_id": "resp_1"}, {"store": True}, {"conversation": "conv_1"}]:
        error = failing(lambda: ask(world.client("responses"), "responses", "say x", **more))
        assert error.status_code == 400, error
    assert world.provider.take() == []
    plain(world)
    listed = [model.id for model in world.client("chat").models.list()]
    assert listed == ["large"], listed
    assert world.client("chat").models.retrieve("large").id == "large"
    assert [model.id for model in world.client("messages").models.list()] == ["large"]
    assert failing(lambda: world.client("chat").models.retrieve("small")).status_code == 404


def plain(world):
    """What no client sends."""
    with httpx2.Client(base_url=URL, trust_env=False) as client:

        def post(path, content, **headers):
            headers = {"content-type": "application/json", "connection": "close", **{name.replace("_", "-"): value for name, value in headers.items()}}
            return client.post(path, content=content, headers=headers)

        chat, key = "/llm/openai/v1/chat/completions", f"Bearer {world.key}"
        twice = post(chat, '{"model": "large", "model": "small", "messages": []}', authorization=key)
        assert twice.status_code == 400 and "duplicate" in twice.json()["error"]["message"], twice.text
        both = post(chat, "{}", authorization=key, x_api_key="another")
        assert both.status_code == 400, both.text
        assert post(chat, "{}").status_code == 401
        wrong = post("/llm/anthropic/v1/messages", "{}", x_api_key="tg_wrong")
        assert wrong.status_code == 401 and wrong.json()["error"]["type"] == "authentication_error", wrong.text
        for path in ["//v1/chat/completions", "/openai/v1/chat/completions/", "/openai/v1/chat/../chat/completions", "/openai/v1/Chat/completions"]:
            assert post("/llm" + path, "{}", authorization=key).status_code == 404, path
        upgrade = client.get("/llm/openai/v1/realtime", headers={"authorization": key, "connection": "upgrade", "upgrade": "websocket"})
        assert upgrade.status_code == 404
        # The protection is that of the tool, and not of the address.
        direct = client.post("/api/v1/tools/invoke", headers={"authorization": key}, json={
            "tool": "openai.responses", "parameters": {"model": "large", "input": "x", "store": True}})
        assert direct.status_code == 400, direct.text
        assert world.provider.take() == []


def guarded():
    """A guardian of somebody else denies, modifies and allows, and the provider and the client see what it decided."""
    world = World()
    for kind in APIS:
        client = world.client(kind)
        denied = openai.PermissionDeniedError if kind != "messages" else anthropic.PermissionDeniedError
        world.provider.take()
        follow({"do": "deny", "method": "steps/message", "role": "user", "contains": "FORBIDDEN", "reason": "not this"})
        for stream in (False, True):
            error = failing(lambda: ask(client, kind, "say FORBIDDEN", stream))
            assert isinstance(error, denied) and "not this" in str(error), error
        assert world.provider.take() == [], "a prompt that is denied reaches no provider"
        follow({"do": "deny", "method": "steps/agentTrigger", "contains": "wake"})
        assert isinstance(failing(lambda: ask(client, kind, "say wake")), denied)
        assert world.provider.take() == []

        follow({"do": "deny", "method": "steps/message", "role": "agent", "contains": "EVIL", "reason": "not that"})
        error = failing(lambda: ask(client, kind, "say Good. Then EVIL. And more."))
        assert isinstance(error, denied) and "not that" in str(error), error
        events, error = streamed_until_error(client, kind, "say A good beginning. Then EVIL plans. And more.")
        text = received(kind, events)
        assert text.startswith("A good beginning.") and "EVIL" not in text and "And more" not in text, text
        assert "not that" in str(error), error
        assert "EVIL" not in json.dumps(events)

        follow({"do": "deny", "method": "steps/toolCallRequest", "tool": "erase", "reason": "no erasing"})
        error = failing(lambda: ask(client, kind, 'call erase {"what": "all"}', tools=True))
        assert isinstance(error, denied) and "no erasing" in str(error), error
        events, error = streamed_until_error(client, kind, 'both erase {"what": "all"}', tools=True)
        assert "no erasing" in str(error) and received(kind, events) == "Let me look.", (events, error)
        assert "what" not in json.dumps(events) and '"erase"' not in json.dumps(events[1:]).replace('"name": "erase", "parameters"', "")
        for stream in (False, True):
            assert "the sk" in json.dumps(ask(client, kind, 'call look {"at": "the sky"}', stream, tools=True))

        world.provider.take()
        follow({"do": "modify", "method": "steps/message", "role": "user"})
        ask(client, kind, "say write to ann@example.org now")
        [(_, _, body)] = world.provider.take()
        assert "ann@example.org" not in json.dumps(body) and "[REDACTED-PII]" in json.dumps(body), body
        follow({"do": "modify", "method": "steps/message", "role": "agent"})
        for stream in (False, True):
            answer = json.dumps(ask(client, kind, "say Write to ann@example.org now. Then rest.", stream))
            assert "example.org" not in answer and "[REDACTED-PII]" in answer and "rest" in answer, answer
        follow({"do": "modify", "method": "steps/toolCallRequest", "tool": "look"})
        for stream in (False, True):
            answer = json.dumps(ask(client, kind, 'call look {"at": "ann@example.org"}', stream, tools=True))
            assert "example.org" not in answer and "REDACTED-PII" in answer, answer
        follow({"do": "deny", "method": "steps/toolCallResult", "contains": "poison"})
        error = failing(lambda: with_result(client, kind, "poison"))
        assert isinstance(error, denied), error
        follow({"do": "close"})
        error = failing(lambda: ask(client, kind, "say hello"))
        assert error.status_code == 503, error
        follow()
        with_result(client, kind, "harmless")


def with_result(client, kind, output):
    """The next request after a call of a tool."""
    more = request(kind, "say thanks", tools=True)
    if kind == "responses":
        more["input"] = [
            {"role": "user", "content": "look"},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": output},
        ]
    elif kind == "chat":
        call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        more["messages"] = [
            {"role": "user", "content": "look"}, {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": output}, {"role": "user", "content": "say thanks"},
        ]
    else:
        more["messages"] = [
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": output}, {"type": "text", "text": "say thanks"}]},
        ]
    return dump(resource(client, kind).create(**more))


def costs():
    """Usage becomes cost exactly, and no budget is exceeded, however many calls there are at once."""
    world = World()
    # As long as the provider says that it is: a cost that is more than the most that a request can cost is capped.
    hello = "say " + "word " * 700
    for kind in APIS:
        for stream in (False, True):
            ask(world.client(kind), kind, hello, stream)
    calls = world.spent()
    assert len(calls) == 6
    for call in calls:
        assert round(cost_of(call) * 1e6) == round(COST * 1e6) and call["cost_basis"] == "stated", call
    ask(world.client("chat"), "chat", "unusual", True)
    [estimated] = [call for call in world.spent() if call["cost_basis"] == "estimated"]
    assert 0 < cost_of(estimated) < COST, estimated
    api("PATCH", f"/api/v1/agents/{world.agent}", {"budget": {"cost_total_usd": LIMIT}})
    used = lambda: next(b for b in api("GET", f"/api/v1/budgets?agent_id={world.agent}")["budgets"] if b["period"] == "total")
    before = used()["used_cost_usd"]
    world.provider.take()

    def call(number):
        kind = APIS[number % 3]
        try:
            ask(world.client(kind, max_retries=2), kind, hello, number % 2 == 1)
            return "made"
        except (openai.PermissionDeniedError, anthropic.PermissionDeniedError) as error:
            assert "budget" in str(error).lower(), error
            return "refused"

    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(call, range(40)))
    assert "refused" in outcomes and "made" in outcomes, outcomes
    after = used()
    assert after["used_cost_usd"] <= LIMIT, after
    made = outcomes.count("made")
    assert len(world.provider.take()) == made, "a call without room in the budget reaches no provider, and is not retried"
    assert round((after["used_cost_usd"] - before) * 1e6) == round(made * COST * 1e6), (before, after, made)
    error = failing(lambda: ask(world.client("chat"), "chat", "say x", extra_body={"max_tokens": 100_000}))
    assert error.code == "budget_exceeded", error


def failures():
    """A provider that fails: its error is passed on, or another one is asked, but never once an answer has begun."""
    world = World()
    for kind in APIS:
        for status in (429, 500, 400):
            error = failing(lambda: ask(world.client(kind, max_retries=0), kind, f"fail {status}"))
            assert error.status_code == status and "the provider is busy" in str(error), error
        events, error = streamed_until_error(world.client(kind, max_retries=0), kind, "cut " + "word " * 40)
        assert received(kind, events).startswith("cut word"), events
        assert "broke off" in str(error) or "closed" in str(error) or "ended" in str(error), error
    for call in world.spent():
        expected = {"stated", "estimated"}
        assert call["cost_basis"] in expected and (cost_of(call) == 0) == (call["cost_basis"] == "stated"), call


def failing_over():
    world = World(fail_over=True)
    for kind in APIS:
        name = "anthropic" if kind == "messages" else "openai"
        for status in (429, 503):
            # The second provider plays the same script: its error is what is left.
            error = failing(lambda: ask(world.client(kind, max_retries=0), kind, f"fail {status}"))
            assert error.status_code == status, error
            assert (len(world.provider.take()), len(world.second.take())) == (1, 1)
        failing(lambda: ask(world.client(kind, max_retries=0), kind, "fail 400"))
        streamed_until_error(world.client(kind, max_retries=0), kind, "cut " + "word " * 40)
        assert (len(world.provider.take()), len(world.second.take())) == (2, 0)
    world.provider.server.shutdown()
    world.provider.server.server_close()
    for kind in APIS:
        name = "anthropic" if kind == "messages" else "openai"
        for stream in (False, True):
            raw = resource(world.client(kind, max_retries=0), kind).with_raw_response.create(
                **request(kind, "say hello"), stream=stream
            )
            list(raw.parse()) if stream else raw.parse()
            assert raw.headers["x-toolgate-provider"] == f"{name}-second", raw.headers
            assert raw.headers["x-toolgate-model"] == "large"
    made = [call["service"] for call in world.spent()]
    assert (made.count("openai-second"), made.count("anthropic-second")) == (8, 4), made


def approved():
    """A stream begins while a person is asked, so that no client gives up; a refusal ends it with an error."""
    world = World()
    definition = json.loads(command(
        "provider", "add", "asked", "--dialect", "openai", "--base-url", world.provider.url, "--print"))
    definition["tools"]["chat"]["approval"] = "always"
    api("POST", "/api/v1/services", definition)
    world.credential("asked", "openai", None)
    api("POST", "/api/v1/agents", {"id": "ann", "kind": "user", "permissions": ["approvals.decide"]})
    approver = api("POST", "/api/v1/agents/ann/keys", {})["key"]
    client = openai.OpenAI(base_url=f"{URL}/llm/asked/v1", api_key=world.key)
    for decision in ["approve", "deny"]:
        stream = client.chat.completions.create(**request("chat", "say hello"), stream=True)
        assert world.provider.take() == []
        [waiting] = api("GET", "/api/v1/approvals?status=pending", key=approver)["approvals"]
        api("POST", f"/api/v1/approvals/{waiting['id']}/decide", {"decision": decision}, key=approver)
        if decision == "approve":
            assert received("chat", [dump(event) for event in stream]) == "hello"
            assert len(world.provider.take()) == 1
        else:
            assert "denied" in str(failing(lambda: list(stream))), "the refusal of a person"
            assert world.provider.take() == []


def log():
    """Nothing of keys and of what is said stays in the log."""
    world = World()
    for kind in APIS:
        for stream in (False, True):
            ask(world.client(kind), kind, "say The plan of the heist is simple.", stream, tools=True)
    events = json.dumps(api("GET", "/api/v1/audit/events?limit=1000"))
    calls = json.dumps(api("GET", "/api/v1/invocations?limit=200"))
    for word in ["heist", SECRET, world.key]:
        assert word not in events and word not in calls, word
    assert "large" in calls


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
        print(f"{name}: done")
