// The forms of the views of streams: creating, publishing, registering queries, pausing, resuming, deleting.
//
// Each sends what any client would send, and shows what the server says to it. A token stays in this module's memory.

import { element } from "./elements.js";
import { Refusal, accepted } from "./server.js";
import { placeOf, tokenAt } from "./sparql.js";

const SENT = { create, publish, register, manage };

/** Lets the forms of a document send what they hold; `changed` is called after each success. */
export function connectForms(document, changed = () => {}) {
  for (const form of document.querySelectorAll("form[data-form]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(form, event.submitter, changed);
    });
  }
}

async function send(form, submitter, changed) {
  const result = form.querySelector(".result");
  const area = form.querySelector("textarea");
  const sent = area?.value;
  const buttons = form.querySelectorAll("button");
  for (const each of buttons) each.disabled = true;
  result.replaceChildren(element("span", { class: "note" }, "Sent: no answer yet."));
  try {
    const said = await SENT[form.dataset.form](form, submitter);
    result.replaceChildren();
    if (said) {
      result.append(element("p", { class: "banner good" }, ...said));
      changed();
    }
  } catch (error) {
    const place = error.line ? ` (line ${error.line}, column ${error.column})` : "";
    const hint = error.hint ? ` Try: ${error.hint}.` : "";
    result.replaceChildren(element("p", { class: "banner bad" }, `${error.message}${place}.${hint}`));
    // not in what was typed since
    if (error.line && area !== null && area.value === sent) select(area, error.line, error.column);
  } finally {
    for (const each of buttons) each.disabled = false;
  }
}

/** Selects the character where an error is. */
function select(area, line, column) {
  const { start, end } = tokenAt([], area.value, placeOf(area.value, line, column));
  area.focus();
  area.setSelectionRange(start, end);
}

async function request(form, url, method, body, headers = {}) {
  const token = form.elements.token?.value;
  const authorization = token ? { Authorization: `Bearer ${token}` } : {};
  return accepted(await fetch(url, { method, body, headers: { ...headers, ...authorization } }));
}

function link(href, text) {
  return element("a", { href }, text);
}

async function create(form) {
  const { name, label, retainedElements, retainedSeconds } = form.elements;
  const said = {};
  if (label.value) said.label = label.value;
  if (retainedElements.value) said.retainedElements = Number(retainedElements.value);
  if (retainedSeconds.value) said.retainedSeconds = Number(retainedSeconds.value);
  const url = `${form.dataset.to}/${encodeURIComponent(name.value)}`;
  try {
    await request(form, url, "PUT", JSON.stringify(said), { "Content-Type": "application/json", "If-None-Match": "*" });
  } catch (error) {
    // the condition that there is no such stream does not hold
    if (error.status !== 412) throw error;
    throw new Refusal({ detail: `There is a stream ${name.value} already`, hint: "another name" }, error.status);
  }
  return ["Created ", link(url, name.value), "."];
}

const keys = new WeakMap(); // of a form: what it sent last, and under which key; sent again, it is stored once

async function publish(form) {
  const { type, body } = form.elements;
  const sent = `${type.value}\n${body.value}`;
  if (keys.get(form)?.sent !== sent) {
    const random = crypto.getRandomValues(new Uint8Array(16));
    keys.set(form, { sent, key: Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("") });
  }
  const headers = { "Content-Type": type.value, "Idempotency-Key": `"${keys.get(form).key}"` };
  const answer = await request(form, form.dataset.to, "POST", body.value, headers);
  keys.delete(form);
  const { first, elements } = await answer.json();
  const sequence = Number(first.slice(first.lastIndexOf("/") + 1));
  const element = (number) => link(`${form.dataset.elements}/${number}`, number);
  if (elements === 1) return ["Stored as element ", element(sequence), "."];
  return [`Stored as ${elements.toLocaleString()} elements, `, element(sequence), " to ", element(sequence + elements - 1), "."];
}

async function register(form) {
  const { query, name, from, source, every } = form.elements;
  const parameters = new URLSearchParams();
  if (from.value) parameters.set("from", from.value);
  if (source?.value) parameters.set("source", source.value);
  if (every?.value) parameters.set("every", every.value);
  const headers = { "Content-Type": "application/sparql-query" };
  if (name.value) headers.Slug = name.value;
  const url = parameters.size ? `${form.dataset.to}?${parameters}` : form.dataset.to;
  const answer = await request(form, url, "POST", query.value, headers);
  const location = answer.headers.get("Location");
  const given = location.slice(location.lastIndexOf("/") + 1);
  return ["Registered. Its messages are the elements of ", link(`${form.dataset.streams}/${given}`, given), "."];
}

async function manage(form, submitter) {
  const url = form.dataset.to;
  if (submitter.value === "delete") {
    if (!window.confirm(`${submitter.textContent}? Its elements are removed for good.`)) return null;
    await request(form, url, "DELETE");
    window.location.assign(form.dataset.streams);
    return null;
  }
  await request(form, url, "PATCH", JSON.stringify({ status: submitter.value }), { "Content-Type": "application/json" });
  window.location.reload();
  return null;
}
