"""A provider that plays a script, in the APIs of OpenAI and of Anthropic, as the types and the documentation of their clients
describe them. The last text of the user says what to answer:

    say TEXT          this text, in pieces of a few letters
    call NAME JSON    a call of this tool
    fail STATUS       an error
    cut               the beginning of an answer, and then the end of the connection
    unusual           an answer without usage

Bytes are split anywhere, and everything that arrives is remembered.
"""

import json
import random
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USAGE = (1000, 400, 50)  # read, of which from a cache, and written


def last_text(body):
    if isinstance(body.get("input"), str):
        return body["input"]
    for item in reversed(body.get("messages") or body.get("input") or []):
        content = item.get("content")
        if isinstance(content, str):
            return content
        for part in reversed(content or []):
            if isinstance(part, dict) and "text" in part:
                return part["text"]
    return ""


def pieces(text):
    """Words of a text, and a few letters at a time of arguments."""
    size = r"\s*\S+\s?" if not text.startswith("{") else r"(?s).{1,7}"
    return re.findall(size, text) or [""]


class Chat:
    def __init__(self, model):
        self.head = {"id": "chatcmpl-1", "created": 1, "model": model + "-2026-01-01"}
        read, cached, written = USAGE
        self.usage = {
            "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": cached},
        }

    def whole(self, text, call, usage):
        message = {"role": "assistant", "content": text, "refusal": None}
        if call:
            function = {"name": call[0], "arguments": call[1]}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        finish = "tool_calls" if call else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        return {**self.head, "object": "chat.completion", "choices": [choice], **({"usage": self.usage} if usage else {})}

    def events(self, text, call, usage, body):
        def chunk(delta, finish=None):
            choices = [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]
            return None, {**self.head, "object": "chat.completion.chunk", "choices": choices}

        yield chunk({"role": "assistant", "content": ""})
        for piece in pieces(text) if text else []:
            yield chunk({"content": piece})
        if call:
            first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": call[0], "arguments": ""}}
            yield chunk({"tool_calls": [first]})
            for piece in pieces(call[1]):
                yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        yield chunk({}, "tool_calls" if call else "stop")
        if usage and (body.get("stream_options") or {}).get("include_usage"):
            yield None, {**self.head, "object": "chat.completion.chunk", "choices": [], "usage": self.usage}
        yield None, "[DONE]"


class Messages:
    def __init__(self, model):
        read, cached, written = USAGE
        self.head = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": model + "-20260101", "stop_sequence": None,
        }
        self.usage = {
            "input_tokens": read - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0,
            "output_tokens": written,
        }

    def whole(self, text, call, usage):
        content = [{"type": "text", "text": text}] if text else []
        if call:
            content.append({"type": "tool_use", "id": "toolu_1", "name": call[0], "input": json.loads(call[1])})
        stop = "tool_use" if call else "end_turn"
        return {**self.head, "content": content, "stop_reason": stop, **({"usage": self.usage} if usage else {})}

    def events(self, text, call, usage, body):
        def typed(kind, **members):
            return kind, {"type": kind, **members}

        start = {**self.head, "content": [], "stop_reason": None, "usage": {**self.usage, "output_tokens": 1}}
        yield typed("message_start", message=start)
        yield typed("ping")
        index = 0
        if text:
            yield typed("content_block_start", index=0, content_block={"type": "text", "text": ""})
            for piece in pieces(text):
                yield typed("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
            yield typed("content_block_stop", index=0)
            index = 1
        if call:
            block = {"type": "tool_use", "id": "toolu_1", "name": call[0], "input": {}}
            yield typed("content_block_start", index=index, content_block=block)
            for piece in pieces(call[1]):
                yield typed("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece})
            yield typed("content_block_stop", index=index)
        delta = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
        yield typed("message_delta", delta=delta, usage={"output_tokens": self.usage["output_tokens"]})
        yield typed("message_stop")


class Responses:
    def __init__(self, model):
        read, cached, written = USAGE
        self.head = {
            "id": "resp_1", "object": "response", "created_at": 1, "model": model + "-2026-01-01", "tools": [],
            "tool_choice": "auto", "parallel_tool_calls": True, "error": None, "instructions": None, "metadata": {},
        }
        self.usage = {
            "input_tokens": read, "output_tokens": written, "total_tokens": read + written,
            "input_tokens_details": {"cached_tokens": cached}, "output_tokens_details": {"reasoning_tokens": 0},
        }

    @staticmethod
    def message(text):
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        content = [part] if text else []
        return {"type": "message", "id": "item_0", "role": "assistant", "status": "completed", "content": content}

    @staticmethod
    def call(name, arguments):
        return {
            "type": "function_call", "id": "item_1", "call_id": "call_1", "name": name, "arguments": arguments,
            "status": "completed",
        }

    def output(self, text, call):
        return ([self.message(text)] if text else []) + ([self.call(*call)] if call else [])

    def whole(self, text, call, usage):
        whole = {**self.head, "status": "completed", "output": self.output(text, call)}
        return {**whole, "usage": self.usage} if usage else whole

    def events(self, text, call, usage, body):
        number = iter(range(1_000_000))

        def typed(kind, **members):
            return kind, {"type": kind, "sequence_number": next(number), **members}

        begun = {**self.head, "status": "in_progress", "output": []}
        yield typed("response.created", response=begun)
        yield typed("response.in_progress", response=begun)
        at = 0
        if text:
            place = {"item_id": "item_0", "output_index": 0, "content_index": 0}
            part = self.message(text)["content"][0]
            yield typed("response.output_item.added", output_index=0, item=self.message(""))
            yield typed("response.content_part.added", **place, part={**part, "text": ""})
            for piece in pieces(text):
                yield typed("response.output_text.delta", **place, delta=piece, logprobs=[])
            yield typed("response.output_text.done", **place, text=text, logprobs=[])
            yield typed("response.content_part.done", **place, part=part)
            yield typed("response.output_item.done", output_index=0, item=self.message(text))
            at = 1
        if call:
            place = {"item_id": "item_1", "output_index": at}
            yield typed("response.output_item.added", output_index=at, item=self.call(call[0], ""))
            for piece in pieces(call[1]):
                yield typed("response.function_call_arguments.delta", **place, delta=piece)
            yield typed("response.function_call_arguments.done", **place, arguments=call[1], name=call[0])
            yield typed("response.output_item.done", output_index=at, item=self.call(*call))
        yield typed("response.completed", response=self.whole(text, call, usage))


APIS = {"/chat/completions": Chat, "/responses": Responses, "/messages": Messages}


class Provider:
    """One provider, with all APIs, at `url`."""

    def __init__(self):
        self.received, self.script, self.lock = [], {}, threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with provider.lock:
                    provider.received.append((self.path, dict(self.headers), body))
                provider.answer(self, body)

            def log_message(self, *further):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def take(self):
        """What arrived since the last time."""
        with self.lock:
            received, self.received = self.received, []
            return received

    def answer(self, handler, body):
        path = handler.path.removeprefix("/v1")
        if path.endswith("_tokens"):
            return self.reply(handler, 200, {"input_tokens": 12, "object": "response.input_tokens"})
        words = last_text(body).split(" ", 2)
        kind, text, call = words[0], None, None
        if kind == "fail":
            status = int(words[1])
            error = {"type": "overloaded_error", "message": "the provider is busy", "code": "busy", "param": None}
            return self.reply(handler, status, {"type": "error", "error": error})
        if kind == "call":
            call = (words[1], words[2])
        elif kind == "both":
            text, call = "Let me look.", (words[1], words[2])
        else:
            text = last_text(body).removeprefix("say ")
        api, usage = APIS[path](body["model"]), kind != "unusual"
        if not body.get("stream"):
            return self.reply(handler, 200, api.whole(text, call, usage))
        frames = []
        for name, data in api.events(text, call, usage, body):
            data = data if isinstance(data, str) else json.dumps(data)
            frames.append((f"event: {name}\n" if name else "") + f"data: {data}\n\n")
        stream = "".join(frames).encode()
        if kind == "cut":
            stream = stream[: len(stream) // 2]
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while stream:
            size = random.randint(1, 200)
            piece, stream = stream[:size], stream[size:]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if kind == "cut":
            handler.close_connection = True
        else:
            handler.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def reply(handler, status, body):
        data = json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)
