"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  // The page may stand below a path of a proxy, so everything is found from where the page is.
  const token = location.pathname.split("/").pop();
  const route = (path) => new URL("../../api/v1/approvals/" + path, location.href);
  const cannotBeSeen = new RegExp(
    "[\\p{Cc}\\p{Cf}\\p{Co}\\p{Cs}\\p{Cn}\\p{Zl}\\p{Zp}]|(?! )\\p{Zs}" +
      "|[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164\\uffa0\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}]",
    "u"
  );
  let key = "";
  let approval = null;
  let exact = true;
  let busy = false;

  // Writes text, and characters that cannot be seen by their number.
  function write(place, text, keepLines) {
    place.replaceChildren();
    let plain = "";
    const flush = () => {
      place.append(plain);
      plain = "";
    };
    for (const letter of String(text)) {
      if (!cannotBeSeen.test(letter) || (keepLines && letter === "\n")) {
        plain += letter;
        continue;
      }
      flush();
      const mark = document.createElement("mark");
      mark.textContent = "U+" + letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      place.append(mark);
    }
    flush();
  }

  function list(place, texts) {
    place.replaceChildren();
    for (const text of texts) {
      const item = document.createElement("li");
      write(item, text, false);
      place.append(item);
    }
  }

  // Numbers as they came: a browser rounds what is too long for it, and nobody must approve something else than is shown.
  function readExactly(text) {
    return JSON.parse(text, (name, value, context) => {
      if (typeof value !== "number") return value;
      if (typeof JSON.rawJSON === "function" && context && typeof context.source === "string") {
        return JSON.rawJSON(context.source);
      }
      const digits = String(value).replace(/[^0-9]/g, "").length;
      if (!Number.isFinite(value) || digits > 15 || Math.abs(value) > Number.MAX_SAFE_INTEGER) exact = false;
      return value;
    });
  }

  function say(text) {
    write(element("message"), text, false);
  }

  async function post(path, body) {
    const headers = { Authorization: "Bearer " + key };
    if (body) headers["Content-Type"] = "application/json";
    const options = { method: "POST", headers, credentials: "omit", cache: "no-store", redirect: "error" };
    if (body) options.body = JSON.stringify(body);
    const answer = await fetch(route(path), options);
    const text = await answer.text();
    if (answer.ok) return text;
    let message = "The gate returned status " + answer.status + ".";
    try {
      message = JSON.parse(text).message || message;
    } catch (error) {
      // A proxy in between has words of its own.
    }
    throw new Error(message);
  }

  function show(text) {
    approval = JSON.parse(text);
    const shown = readExactly(text);
    write(element("tool"), approval.tool, false);
    write(element("agent"), approval.agent_id, false);
    write(element("category"), approval.category, false);
    write(element("description"), approval.description, false);
    const action = approval.action;
    for (const part of ["request-name", "request", "credential-name", "credential"]) element(part).hidden = !action;
    if (action) {
      write(element("request"), action.method + " " + action.host, false);
      write(element("credential"), action.credential_label, false);
    }
    list(element("reasons"), approval.reasons.map((reason) => reason.text));
    write(element("risk"), approval.risk.level, false);
    list(element("notes"), approval.risk.notes);
    write(element("arguments"), JSON.stringify(shown.arguments, null, 2), true);
    element("changed").hidden = shown.original_arguments === null;
    write(element("original"), JSON.stringify(shown.original_arguments, null, 2), true);
    showQuestion(approval.question);
    element("entrance").hidden = true;
    element("call").hidden = false;
    const waits = approval.status === "pending";
    element("decision").hidden = !waits;
    element("approve").hidden = !exact;
    if (!waits) say("It no longer waits: it is " + approval.status.replace("_", " ") + ".");
    else if (!exact) say("This browser cannot show a number in the arguments exactly. Approve with `toolgate approvals`.");
    else say("");
    // Not a button: a key that is still held down must decide nothing.
    element("tool").focus();
    count();
  }

  function showQuestion(question) {
    element("question").hidden = !question;
    if (!question) return;
    write(element("asked"), question.text, false);
    const offered = Array.isArray(question.options) ? question.options.filter((one) => typeof one === "string") : [];
    element("options").hidden = offered.length === 0;
    element("answer").hidden = offered.length > 0;
    element("options").replaceChildren();
    for (const option of ["", ...offered]) {
      const item = document.createElement("option");
      item.value = option;
      write(item, option, false);
      element("options").append(item);
    }
  }

  function answerToQuestion() {
    return element("options").hidden ? element("answer").value : element("options").value;
  }

  // A clock that runs wrong shows a wrong time and changes nothing: the gate decides what is too late.
  function count() {
    const seconds = Math.max(0, Math.round((Date.parse(approval.expires_at) - Date.now()) / 1000));
    const minutes = Math.floor(seconds / 60);
    element("left").textContent = minutes + " min " + (seconds % 60) + " s";
    if (approval.status === "pending") setTimeout(count, 1000);
  }

  // One name for each answer, so that the same one sent twice counts once.
  function name() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return "web-" + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  async function decide(decision) {
    if (busy || !approval) return;
    const body = { decision, channel: "web", idempotency_key: name() };
    if (decision === "approve") body.scope = "once";
    if (decision === "deny" && element("reason").value) body.reason = element("reason").value;
    if (decision === "approve" && approval.question) {
      body.answer = answerToQuestion();
      if (!body.answer.trim()) {
        say("Answer the question first.");
        return;
      }
    }
    await alone(async () => {
      approval = JSON.parse(await post(encodeURIComponent(approval.id) + "/decide", body));
      const waits = approval.status === "pending";
      element("decision").hidden = true;
      say(waits ? "Your decision is recorded. Other approvers must agree too." : "Done: it is " + approval.status.replace("_", " ") + ".");
      if (!waits) key = "";
    });
  }

  // One thing at a time, with what went wrong told to the person.
  async function alone(work) {
    if (busy) return;
    busy = true;
    try {
      await work();
    } catch (error) {
      say(error.message);
    } finally {
      busy = false;
    }
  }

  element("entrance").addEventListener("submit", (event) => {
    event.preventDefault();
    key = element("key").value.trim();
    alone(async () => {
      const text = await post("links/" + encodeURIComponent(token) + "/redeem", null);
      element("key").value = "";
      show(text);
    });
  });
  for (const id of ["approve", "deny"]) {
    element(id).addEventListener("click", () => decide(id));
    element(id).addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault();
    });
  }
})();
