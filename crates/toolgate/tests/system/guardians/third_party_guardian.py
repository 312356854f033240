"""A guardian of somebody else: AOS 0.1.0 over HTTP, written from the specification, with the standard library only.

    third_party_guardian.py --port 0 --log FILE [--rules JSON] [--address 127.0.0.1]

Its first line of output is the port. `POST` to any path but the control routes is a question. The first rule that fits
it says what to do; where none fits, the answer is allow. A rule is an object:

    {"do": "deny", "method": "steps/toolCallRequest", "tool": "bank.transfer", "reason": "no", ...}

`method`, `role` (of a message), `tool` and `contains` (a text in the JSON of `params`, which is written without spaces and with
sorted keys) choose the question and may be left out. `dialect` is "aos" (the default: a text in `message`, the
whole request in `modifiedRequest`) or "joch" (a text in `reason`, only what changed in `modifiedRequest`); `form`
("whole" or "fragment") decides on `modifiedRequest` alone. What can be done:

    allow, deny                right answers
    modify                     takes e-mail addresses out of the payload, and sets the inputs that `set` names
    drop                       modify that leaves out entries and results with the word poison
    hold                       answers as `then` says when it is released, which may be never
    slow                       answers as `then` says after `milliseconds`
    close                      closes the connection without a byte
    exit                       ends the process
    status                     answers with the HTTP status `status`
    garbage, half, oversized   no JSON; less than was announced; five million bytes
    wrong_type, wrong_id       another content type; another id
    error                      an error member with the code `code`
    unknown_decision           a decision that the specification does not know
    no_decision                a result without a decision
    no_request                 modify without a modifiedRequest
    other_tool, other_agent    modify that changes what must not change

Control: `POST /control/rules` takes new rules, `POST /control/release` lets go of all that is held, and
`GET /control/state` tells how many questions came, are held and were answered. Each question is one line of the log:
path, headers, body, what was done, and what is wrong with it by the specification.
"""

import argparse
import copy
import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")

# The member of `params` that a step is about, and the part of that which a guardian may change; None: all of it.
PAYLOADS = {
    "steps/agentTrigger": ("trigger", "content"),
    "steps/toolCallRequest": ("toolCallRequest", "inputs"),
    "steps/toolCallResult": ("toolCallResult", "result"),
    "steps/message": ("message", "content"),
    "steps/memoryContextRetrieval": ("memory", None),
    "steps/memoryStore": ("memory", None),
    "steps/knowledgeRetrieval": ("knowledgeStep", "results"),
    "protocols/MCP": ("message", None),
}
# What agents say to each other, under the names that the specification has and those of A2A 1.0, which is younger.
A2A = {
    "tasks/list",
    "agent/getAuthenticatedExtendedCard",
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "CancelTask",
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
}


class State:
    """What the threads of the server share."""

    def __init__(self, log, rules):
        self.log = log
        self.rules = rules
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.released = 0
        self.questions = 0
        self.held = 0
        self.answered = 0

    def arrive(self, line):
        """Writes a question down before anything is done about it."""
        with self.lock:
            self.questions += 1
            self.log.write(json.dumps(line) + "\n")
            self.log.flush()

    def hold(self):
        """Waits until somebody releases what is held."""
        with self.changed:
            round_of_release = self.released
            self.held += 1
            self.changed.wait_for(lambda: self.released > round_of_release)
            self.held -= 1

    def release(self):
        with self.changed:
            self.released += 1
            self.changed.notify_all()

    def told(self):
        with self.lock:
            return {"questions": self.questions, "held": self.held, "answered": self.answered}

    def count_answer(self):
        with self.lock:
            self.answered += 1


def violations(message):
    """What is wrong with a question by the specification."""
    if not isinstance(message, dict):
        return ["the body is no object"]
    wrong = []
    if message.get("jsonrpc") != "2.0":
        wrong.append("jsonrpc is not 2.0")
    if isinstance(message.get("id"), bool) or not isinstance(message.get("id"), (str, int)):
        wrong.append("id is neither text nor an integer")
    method = message.get("method")
    params = message.get("params")
    if not isinstance(params, dict):
        return wrong + ["params is no object"]
    context = params.get("context")
    if not isinstance(context, dict):
        return wrong + ["params.context is no object"]
    if method in A2A:
        if "payload" not in params:
            wrong.append("params.payload is missing")
        return wrong
    if method not in PAYLOADS:
        return wrong + [f"the method {method!r} is unknown"]
    name, _ = PAYLOADS[method]
    if name not in params:
        wrong.append(f"params.{name} is missing")
    wrong += context_violations(context)
    wrong += step_violations(method, params)
    if "reasoning" in params and not isinstance(params["reasoning"], str):
        wrong.append("params.reasoning is no text")
    return wrong


def context_violations(context):
    """What is wrong with who asks, and when."""
    wrong = []
    agent = context.get("agent")
    for name in ("id", "name"):
        if not isinstance(agent, dict) or not isinstance(agent.get(name), str):
            wrong.append(f"context.agent.{name} is no text")
    session = context.get("session")
    if not isinstance(session, dict) or not isinstance(session.get("id"), str):
        wrong.append("context.session.id is no text")
    for name in ("turnId", "stepId", "timestamp"):
        if not isinstance(context.get(name), str):
            wrong.append(f"context.{name} is no text")
    if not re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", str(context.get("timestamp"))):
        wrong.append("context.timestamp is no time of ISO 8601")
    return wrong


def step_violations(method, params):
    """What is wrong with the two steps around a call of a tool."""
    wrong = []
    if method == "steps/toolCallRequest":
        step = params.get("toolCallRequest")
        step = step if isinstance(step, dict) else {}
        for name in ("executionId", "toolId"):
            if not isinstance(step.get(name), str):
                wrong.append(f"toolCallRequest.{name} is no text")
        inputs = step.get("inputs")
        if not isinstance(inputs, list):
            return wrong + ["toolCallRequest.inputs is no list"]
        for given in inputs:
            if not isinstance(given, dict) or not isinstance(given.get("name"), str) or "value" not in given:
                wrong.append("an input has no name or no value")
    if method == "steps/toolCallResult":
        step = params.get("toolCallResult")
        step = step if isinstance(step, dict) else {}
        if not isinstance(step.get("executionId"), str):
            wrong.append("toolCallResult.executionId is no text")
        result = step.get("result")
        result = result if isinstance(result, dict) else {}
        if not isinstance(result.get("isError"), bool):
            wrong.append("result.isError is no boolean")
        outputs = result.get("outputs")
        if not isinstance(outputs, list):
            return wrong + ["result.outputs is no list"]
        for part in outputs:
            if not isinstance(part, dict) or part.get("kind") != "text" or not isinstance(part.get("text"), str):
                wrong.append("an output is no text part")
    return wrong


def without_addresses(value):
    """The same value without e-mail addresses."""
    if isinstance(value, str):
        return EMAIL.sub("[REDACTED-PII]", value)
    if isinstance(value, list):
        return [without_addresses(member) for member in value]
    if isinstance(value, dict):
        return {name: without_addresses(member) for name, member in value.items()}
    return value


def modified(message, rule):
    """The request as this guardian wants it, and the part that it changed."""
    request = copy.deepcopy(message)
    method, params = request["method"], request["params"]
    name, part = PAYLOADS.get(method, ("payload", None))
    payload = params[name]
    if part is None:
        params[name] = without_addresses(payload)
        return request, {name: params[name]}
    payload[part] = without_addresses(payload[part])
    if part == "inputs":
        for given in payload[part]:
            if given["name"] in rule.get("set", {}):
                given["value"] = rule["set"][given["name"]]
    return request, {part: payload[part]}


def dropped(message):
    """The request without entries and results that have the word poison."""
    request = copy.deepcopy(message)
    params = request["params"]
    if "memory" in params:
        params["memory"] = [entry for entry in params["memory"] if "poison" not in entry]
        return request
    step = params["knowledgeStep"]
    step["results"] = [result for result in step["results"] if "poison" not in result["content"]]
    return request


def verdict(decision, rule, reason, **more):
    """A result in the words of the rule's dialect."""
    if rule.get("dialect") == "joch":
        return {"decision": decision, "reason": reason, "policyId": "third-party", "policyVersion": "v7", **more}
    return {"decision": decision, "message": reason, "reasonCode": [f"third_party_{decision}"], **more}


def result_of(action, message, rule):
    """The result that an action means; None where it is not a matter of the result."""
    reason = rule.get("reason", f"the third party says {action}")
    if action == "deny":
        return verdict("deny", rule, reason)
    if action == "unknown_decision":
        return verdict("perhaps", rule, reason)
    if action == "no_decision":
        return {"message": reason}
    if action == "no_request":
        return verdict("modify", rule, reason)
    if action == "drop":
        return verdict("modify", rule, reason, modifiedRequest=dropped(message))
    if action in ("modify", "other_tool", "other_agent"):
        whole, fragment = modified(message, rule)
        if action == "other_tool":
            whole["params"]["toolCallRequest"]["toolId"] = "bank.something_else"
            fragment["toolId"] = "bank.something_else"
        elif action == "other_agent":
            whole["params"]["context"]["agent"]["id"] = "somebody_else"
        elif whole == message:
            return verdict("allow", rule, "there is nothing to change")
        usual = "fragment" if rule.get("dialect") == "joch" else "whole"
        form = whole if rule.get("form", usual) == "whole" else fragment
        return verdict("modify", rule, reason, modifiedRequest=form)
    return verdict("allow", rule, rule.get("reason", "nothing is wrong with it"))


def fits(rule, message):
    """Whether a rule is about this question."""
    if not isinstance(message, dict):
        return not {"method", "role", "tool", "contains"} & set(rule)
    params = message.get("params")
    text = json.dumps(params, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    if rule.get("contains", "") not in text:
        return False
    step = params.get("toolCallRequest") if isinstance(params, dict) else None
    tool = step.get("toolId") if isinstance(step, dict) else None
    said = params.get("message") if isinstance(params, dict) else None
    role = said.get("role") if isinstance(said, dict) else None
    if rule.get("role", role) != role:
        return False
    return rule.get("method", message.get("method")) == message.get("method") and rule.get("tool", tool) == tool


class Guardian(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    state = None

    def log_message(self, *_):
        """The log is the file."""

    def do_GET(self):
        if self.path == "/control/state":
            return self.reply(self.state.told())
        return self.reply({"error": "there is nothing here"}, status=404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            return self.reply({"error": "announce the length"}, status=411)
        if self.path == "/control/rules":
            self.state.rules = json.loads(body)
            return self.reply({})
        if self.path == "/control/release":
            self.state.release()
            return self.reply({})
        return self.question(body)

    def question(self, body):
        """Writes it down, and does what the first rule that fits says."""
        try:
            message, wrong = json.loads(body), []
        except ValueError:
            message, wrong = None, ["the body is no JSON"]
        wrong = wrong or violations(message)
        if self.headers.get_content_type() != "application/json":
            wrong.append("the content type is not application/json")
        rule = next((rule for rule in self.state.rules if fits(rule, message)), {"do": "allow"})
        headers = {name.lower(): value for name, value in self.headers.items()}
        line = {"path": self.path, "headers": headers, "body": message, "do": rule["do"], "violations": wrong}
        self.state.arrive(line)
        try:
            if isinstance(message, dict) and message.get("method") == "ping":
                self.answer({"result": {"status": "connected", "version": "0.1.0", "timestamp": "now"}}, message)
            elif wrong:
                self.answer({"error": {"code": -32600, "message": "; ".join(wrong)}}, message)
            else:
                self.act(rule["do"], rule, message)
            self.state.count_answer()
        except (BrokenPipeError, ConnectionResetError):
            # Whoever asked no longer waits.
            self.close_connection = True
            self.state.count_answer()

    def act(self, action, rule, message):
        if action == "hold":
            self.state.hold()
            self.act(rule.get("then", "allow"), rule, message)
        elif action == "slow":
            threading.Event().wait(rule["milliseconds"] / 1000)
            self.act(rule.get("then", "allow"), rule, message)
        elif action == "close":
            self.close_connection = True
        elif action == "exit":
            os._exit(3)
        elif action == "status":
            self.reply({"error": "this guardian is out of order"}, status=rule.get("status", 500))
        elif action == "garbage":
            self.send(b"<html>{\"decision\": \"allow\"", "application/json", 200)
        elif action == "half":
            whole = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": verdict("allow", rule, "yes")})
            self.close_connection = True
            self.send(whole.encode()[:-10], "application/json", 200, announced=len(whole))
        elif action == "oversized":
            self.answer({"result": verdict("allow", rule, "x" * 5_000_000)}, message)
        elif action == "wrong_type":
            self.answer({"result": verdict("allow", rule, "yes")}, message, content_type="text/html")
        elif action == "wrong_id":
            self.answer({"result": verdict("allow", rule, "yes")}, {"id": "somebody-elses-question"})
        elif action == "error":
            self.answer({"error": {"code": rule.get("code", -32603), "message": "it went wrong"}}, message)
        else:
            self.answer({"result": result_of(action, message, rule)}, message)

    def answer(self, member, message, content_type="application/json"):
        """Answers in JSON-RPC."""
        asked = message.get("id") if isinstance(message, dict) else None
        self.reply({"jsonrpc": "2.0", "id": asked, **member}, content_type=content_type)

    def reply(self, value, status=200, content_type="application/json"):
        self.send(json.dumps(value).encode(), content_type, status)

    def send(self, body, content_type, status, announced=None):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(announced or len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Many questions at a time; those that are held do not keep the process alive."""

    daemon_threads = True
    request_queue_size = 128


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", required=True)
    parser.add_argument("--rules", type=json.loads, default=[])
    arguments = parser.parse_args()
    with open(arguments.log, "a", encoding="utf-8") as log:
        Guardian.state = State(log, arguments.rules)
        with Server((arguments.address, arguments.port), Guardian) as server:
            print(server.server_address[1], flush=True)
            server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
