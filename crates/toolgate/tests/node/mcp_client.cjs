// Drives a running gate with the official TypeScript clients, in both eras: list, call, refusal, approval, revocation while
// connected.
"use strict";

const assert = require("node:assert/strict");
const modern = require("@modelcontextprotocol/client");
const legacy = {
  ...require("@modelcontextprotocol/sdk/client/index.js"),
  ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
  ...require("@modelcontextprotocol/sdk/types.js"),
};
const gate = require("./gate.cjs");

const INFO = { name: "test", version: "1" };

async function drive(name, client, transport, version, call) {
  await client.connect(transport);
  assert.equal(client.getServerVersion().name, "toolgate");
  assert.equal(version(), name.startsWith("2026") ? "2026-07-28" : "2025-11-25");
  const list = async () => (await client.listTools(undefined, { cacheMode: "bypass" })).tools;
  const tools = new Map((await list()).map((tool) => [tool.name, tool]));
  assert.ok(tools.has("bank_balance") && tools.has("bank_transfer"), [...tools.keys()].join());
  assert.equal(tools.get("bank_balance").inputSchema.type, "object");
  assert.equal(tools.get("bank_transfer").annotations.destructiveHint, true);

  const balance = await call("bank_balance", { amount: 1, to: "ann" });
  assert.deepEqual(balance.structuredContent, { done: true });
  const refused = await call("bank_balance", { amount: [], to: "ann" });
  assert.equal(refused.isError, true);
  assert.equal(refused._meta["toolgate/code"], "PARAMETERS_INVALID");
  await assert.rejects(call("bank_nothing", {}), { code: -32602 });

  const waiting = await call("bank_transfer", { amount: 5, to: "ann" });
  assert.equal(waiting._meta["toolgate/code"], "APPROVAL_REQUIRED", JSON.stringify(waiting));
  await gate.approveAndRun("transfer");
  const approved = await call("bank_transfer", { amount: 5, to: "ann" });
  assert.deepEqual(approved.structuredContent, { done: true });
  assert.equal(approved._meta["toolgate/invocation_id"], waiting._meta["toolgate/invocation_id"]);

  await gate.suspend();
  assert.deepEqual(await list(), []);
  await assert.rejects(call("bank_balance", { amount: 1, to: "ann" }), { code: -32602 });
  await gate.resume();
  await client.close();
  console.log(`${name}: done`);
}

const options = { requestInit: { headers: { Authorization: `Bearer ${gate.key}` } } };

async function driveClient(name, mode) {
  const client = new modern.Client(INFO, { versionNegotiation: { mode } });
  const transport = new modern.StreamableHTTPClientTransport(gate.mcp, options);
  const call = (tool, args) => client.callTool({ name: tool, arguments: args });
  await drive(name, client, transport, () => client.getNegotiatedProtocolVersion(), call);
}

async function driveSdk() {
  const client = new legacy.Client(INFO);
  const transport = new legacy.StreamableHTTPClientTransport(gate.mcp, options);
  const call = (tool, args) => client.callTool({ name: tool, arguments: args });
  await drive("2025 with the first SDK", client, transport, () => transport.protocolVersion, call);
}

// A client that opens pages for its user is given the page of the approval, and goes on by itself.
async function driveElicitation() {
  const client = new modern.Client(INFO, {
    capabilities: { elicitation: { url: {} } },
    versionNegotiation: { mode: { pin: "2026-07-28" } },
  });
  const opened = [];
  client.setRequestHandler("elicitation/create", async (request) => {
    opened.push(request.params.mode);
    await gate.approveLink("transfer", request.params.url);
    return { action: "accept" };
  });
  await client.connect(new modern.StreamableHTTPClientTransport(gate.mcp, options));
  const result = await client.callTool({ name: "bank_transfer", arguments: { amount: 7, to: "ann" } });
  assert.deepEqual(result.structuredContent, { done: true });
  assert.deepEqual(opened, ["url"]);
  await client.close();
  console.log("elicitation: done");
}

async function main() {
  await driveClient("2026", { pin: "2026-07-28" });
  await driveClient("2026 by itself", "auto");
  await driveClient("2025", "legacy");
  await driveSdk();
  await driveElicitation();
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
