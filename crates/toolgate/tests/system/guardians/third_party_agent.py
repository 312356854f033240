"""The runtime of somebody else's agent: asks a guardian at every hook of AOS 0.1.0. Written from the specification,
with the standard library only.

    AOS_KEY=... third_party_agent.py --url URL --agent ID [--hook NAME] [--tool NAME] [--inputs JSON] [--session ID]
                                     [--fragments]

Prints a line of JSON for each hook: `{"hook", "decision", "ok", "performed", ...}`. It does what it is told:
`performed` is what it went on with, which is what it had on allow, what came back on modify, and null on deny. Ends
with 1 if any answer was not one of the specification, and tells in `problem` which rule it broke.
"""

import argparse
import copy
import json
import os
import sys
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timezone

# Which member of `params` each step is about.
PAYLOADS = {
    "steps/agentTrigger": "trigger",
    "steps/toolCallRequest": "toolCallRequest",
    "steps/toolCallResult": "toolCallResult",
    "steps/message": "message",
    "steps/memoryContextRetrieval": "memory",
    "steps/memoryStore": "memory",
    "steps/knowledgeRetrieval": "knowledgeStep",
    "protocols/MCP": "message",
}

# The members of a payload that say what it is about: an answer that changes them is no answer to the question.
IDENTITY = ("id", "executionId", "toolId", "role", "jsonrpc", "method", "type", "event", "taskId", "contextId")

# A guardian may allow or deny these, and has no way to change them.
UNCHANGEABLE = ("tasks/cancel", "tasks/resubscribe", "tasks/pushNotificationConfig/get")

# What each A2A method carries.
A2A = {
    "a2a_send": ("message/send", {"message": {}}),
    "a2a_stream": ("message/stream", {"message": {}}),
    "a2a_cancel": ("tasks/cancel", {"id": "task-1"}),
    "a2a_get_task": ("tasks/get", {"id": "task-1", "historyLength": 2}),
    "a2a_set_notification": (
        "tasks/pushNotificationConfig/set",
        {"taskId": "task-1", "pushNotificationConfig": {"url": "https://agents.example/told"}},
    ),
    "a2a_get_notification": ("tasks/pushNotificationConfig/get", {"id": "task-1"}),
    "a2a_resubscribe": ("tasks/resubscribe", {"id": "task-1"}),
    "a2a_send_1_0": ("SendMessage", {"message": {}}),
    "a2a_get_task_1_0": ("GetTask", {"id": "task-1"}),
    "a2a_cancel_1_0": ("CancelTask", {"id": "task-1"}),
}


class Violation(Exception):
    """The guardian broke a rule of the protocol."""


def require(condition, rule):
    if not condition:
        raise Violation(rule)


def text_part(text):
    return {"kind": "text", "text": text}


class Runtime:
    """An agent in one turn of one session."""

    def __init__(self, arguments):
        self.url = arguments.url
        self.key = os.environ["AOS_KEY"]
        self.agent = arguments.agent
        self.tool = arguments.tool
        self.inputs = arguments.inputs
        self.fragments = arguments.fragments
        self.session = arguments.session or str(uuid.uuid4())
        self.turn = str(uuid.uuid4())
        self.execution = str(uuid.uuid4())

    def context(self):
        return {
            "agent": {
                "id": self.agent,
                "name": "Somebody else's agent",
                "instructions": "Help the customers.",
                "version": "3",
                "provider": {"name": "Example Models", "url": "https://models.example/"},
            },
            "session": {"id": self.session},
            "turnId": self.turn,
            "stepId": str(uuid.uuid4()),
            "timestamp": datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "user": {"id": "customer-7", "organization": {"id": "acme"}},
        }

    def hooks(self):
        """Every hook of the specification's table: name, method, what is peculiar in `params`."""
        inputs = [{"name": name, "value": value} for name, value in self.inputs.items()]
        said = lambda role, text: {"id": str(uuid.uuid4()), "role": role, "content": [text_part(text)]}
        trigger = {"type": "autonomous", "event": {"type": "schedule", "id": "nightly"}, "content": [text_part("Go.")]}
        found = {"query": "returns", "results": [{"id": "page-1", "content": "Thirty days.", "mimeType": "text/plain"}]}
        lookup = {"name": "lookup", "arguments": {"q": "x"}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": lookup}
        response = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "found"}]}}
        result = {"outputs": [text_part("done")], "isError": False}
        yield "agent_trigger", "steps/agentTrigger", {"trigger": trigger}
        yield "user_message", "steps/message", {"message": said("user", "Where is my parcel?"), "citations": []}
        yield "memory_context_retrieval", "steps/memoryContextRetrieval", {"memory": ["The customer is polite."]}
        yield "knowledge_retrieval", "steps/knowledgeRetrieval", {"knowledgeStep": found}
        step = {"executionId": self.execution, "toolId": self.tool, "inputs": inputs}
        yield "tool_call_request", "steps/toolCallRequest", {"toolCallRequest": step}
        step = {"executionId": self.execution, "result": result}
        yield "tool_call_result", "steps/toolCallResult", {"toolCallResult": step}
        yield "mcp_outbound", "protocols/MCP", {"message": request}
        yield "mcp_inbound", "protocols/MCP", {"message": response}
        for name, (method, params) in A2A.items():
            yield name, method, self.a2a(method, params)
        yield "memory_store", "steps/memoryStore", {"memory": ["The parcel is late."]}
        yield "agent_response", "steps/message", {"message": said("agent", "It is on its way."), "citations": []}
        yield "system_message", "steps/message", {"message": said("system", "The session ends."), "citations": []}

    def a2a(self, method, params):
        """A message to another agent, as the side that sends it asks about it."""
        params = copy.deepcopy(params)
        if "message" in params:
            flat = method[0].isupper()
            part = {"text": "Please ship it."} if flat else text_part("Please ship it.")
            role = "ROLE_USER" if flat else "user"
            params["message"] = {"messageId": str(uuid.uuid4()), "role": role, "parts": [part]}
        peer = {"url": "https://shipping.example/a2a", "name": "Shipping", "version": "1"}
        sides = {
            "from": {"agent": self.context()["agent"], "role": "client"},
            "to": {"agent": peer, "role": "server"},
        }
        message = {"jsonrpc": "2.0", "id": str(uuid.uuid4()), "method": method, "params": params}
        return {"payload": message, "context": sides}

    def ask(self, method, params):
        """Asks the guardian; answers its result."""
        params = {"reasoning": "The customer asked for it.", "context": self.context(), **params}
        request = {"jsonrpc": "2.0", "id": str(uuid.uuid4()), "method": method, "params": params}
        return request, self.answer_to(request)

    def answer_to(self, request):
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        call = urllib.request.Request(self.url, json.dumps(request).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(call, timeout=60) as reply:
                status, kind, body = reply.status, reply.headers.get_content_type(), reply.read()
        except urllib.error.HTTPError as error:
            raise Violation(f"HTTP status {error.code}: {error.read().decode(errors='replace')}") from None
        require(status == 200, f"HTTP status {status}")
        require(kind == "application/json", f"content type {kind}")
        answer = json.loads(body)
        require(isinstance(answer, dict), "the answer is no object")
        require(answer.get("jsonrpc") == "2.0", "jsonrpc is not 2.0")
        require(answer.get("id") == request["id"], "the id is not that of the question")
        require(("result" in answer) != ("error" in answer), "there is not exactly one of result and error")
        if "error" in answer:
            error = answer["error"]
            require(isinstance(error, dict) and isinstance(error.get("code"), int), "error.code is no integer")
            raise Violation(f"an error instead of a decision: {error}")
        require(isinstance(answer["result"], dict), "result is no object")
        return answer["result"]

    def ping(self):
        request = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"timestamp": self.context()["timestamp"]}}
        result = self.answer_to(request)
        require(result.get("status") == "connected", "the guardian is not connected")
        require(isinstance(result.get("version"), str), "version is no text")
        require(isinstance(result.get("timestamp"), str), "timestamp is no text")
        return {"hook": "ping", "decision": None, "ok": True}

    def walk(self, name, method, params):
        """One hook: asks, checks the answer, and does what it says."""
        request, result = self.ask(method, params)
        decision = result.get("decision")
        require(decision in ("allow", "deny", "modify"), f"the decision {decision!r} is unknown")
        require(isinstance(result.get("message"), str) and result["message"], "message is no text")
        for member in ("reason", "reasoning", "policyId", "policyVersion"):
            require(isinstance(result.get(member, ""), str), f"{member} is no text")
        codes = result.get("reasonCode", [])
        require(isinstance(codes, list) and all(isinstance(code, str) for code in codes), "reasonCode is no texts")
        require((decision == "modify") == ("modifiedRequest" in result), "modifiedRequest goes with modify alone")
        member = PAYLOADS.get(method, "payload")
        performed = request["params"][member]
        if decision == "deny":
            performed = None
        elif decision == "modify":
            require(method not in UNCHANGEABLE, f"{method} cannot be changed")
            performed = self.changed(request, member, result["modifiedRequest"])
        line = {"hook": name, "decision": decision, "ok": True, "performed": performed, "message": result["message"]}
        return {**line, "reasonCode": codes, "policyId": result.get("policyId"), "data": result.get("data")}

    def changed(self, request, member, given):
        """The payload to go on with, where the guardian changed it."""
        require(isinstance(given, dict), "modifiedRequest is no object")
        payload = request["params"][member]
        if self.fragments:
            require("jsonrpc" not in given or member == "message", "modifiedRequest is not a fragment")
            return {**payload, **given} if isinstance(payload, dict) else given[member]
        require(set(given) == {"jsonrpc", "id", "method", "params"}, "modifiedRequest is not a whole request")
        for name in ("jsonrpc", "id", "method"):
            require(given[name] == request[name], f"modifiedRequest.{name} is another one")
        require(isinstance(given["params"], dict), "modifiedRequest.params is no object")
        for name, value in request["params"].items():
            if name != member:
                require(given["params"].get(name) == value, f"modifiedRequest changes params.{name}")
        changed = given["params"].get(member)
        require(type(changed) is type(payload), f"modifiedRequest.params.{member} is of another kind")
        for name in IDENTITY:
            if isinstance(payload, dict):
                require(changed.get(name) == payload.get(name), f"modifiedRequest changes {member}.{name}")
        require(changed != payload, "modify without a change")
        return changed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--hook")
    parser.add_argument("--tool", default="search")
    parser.add_argument("--inputs", type=json.loads, default={"query": "returns"})
    parser.add_argument("--session")
    parser.add_argument("--fragments", action="store_true")
    arguments = parser.parse_args()
    runtime = Runtime(arguments)
    broken = False
    steps = [("ping", runtime.ping, ())]
    steps += [(name, runtime.walk, (name, method, params)) for name, method, params in runtime.hooks()]
    for name, step, given in steps:
        if arguments.hook not in (None, name):
            continue
        try:
            line = step(*given)
        except (Violation, OSError, ValueError) as problem:
            broken = True
            line = {"hook": name, "decision": None, "ok": False, "problem": str(problem)}
        print(json.dumps(line), flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
