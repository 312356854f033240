// The gate that a script drives, through its HTTP API: what its administrator and its approver do meanwhile.
"use strict";

const { TOOLGATE_URL, ADMIN_KEY, AGENT_KEY, APPROVER_KEY, GRANT } = process.env;

async function api(key, method, path, body) {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const response = await fetch(TOOLGATE_URL + path, { method, headers, body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

// How many calls of a tool were executed.
async function executed(tool) {
  const found = await api(ADMIN_KEY, "GET", "/api/v1/invocations?agent_id=teller&limit=100");
  return found.invocations.filter((call) => call.tool === tool && call.status === "success").length;
}

// The approval that a call waits for, once it does.
async function pending() {
  for (;;) {
    const { approvals } = await api(APPROVER_KEY, "GET", "/api/v1/approvals?status=pending");
    if (approvals.length > 0) return approvals[0].id;
  }
}

// Approves the call that waits, and returns when it was executed.
async function approveAndRun(tool, approval) {
  approval ??= await pending();
  const before = await executed(tool);
  await api(APPROVER_KEY, "POST", `/api/v1/approvals/${approval}/decide`, { decision: "approve" });
  while ((await executed(tool)) === before);
}

// What somebody does who opens the page of a link and may decide.
async function approveLink(tool, link) {
  const token = new URL(link).pathname.split("/").pop();
  const approval = await api(APPROVER_KEY, "POST", `/api/v1/approvals/links/${token}/redeem`);
  await approveAndRun(tool, approval.id);
}

const suspend = () => api(ADMIN_KEY, "PATCH", `/api/v1/grants/${GRANT}/suspend`, { reason: "a test" });
const resume = () => api(ADMIN_KEY, "PATCH", `/api/v1/grants/${GRANT}/resume`);

module.exports = { approveAndRun, approveLink, key: AGENT_KEY, mcp: new URL(`${TOOLGATE_URL}/mcp`), resume, suspend };
