// The forms of the views of streams: creating, publishing, registering queries, pausing, resuming, deleting.
//
// Each sends the request of an ordinary client, and shows the server's answer. A token is only kept in this module's
// memory.

import { countOf, element } from "./elements.js";
import { Refusal, accepted } from "./server.js";
import { placeOf, tokenAt } from "./sparql.js";
import { ACCEPT, describedCount, showMessages } from "./trying.js";

const ELEMENTS = "RDF-Stream-Taken"; // headers of answers; see rdf/wire.py
const INVALID = "RDF-Stream-Invalid";
const SENT = { create, publish, register, manage };

/** Shows the forms of a document, and lets them send what they hold; `changed` is called after each success. */
export function connectForms(document, changed = () => {}) {
  for (const each of document.querySelectorAll(".needs-script")) each.hidden = false;
  for (const form of document.querySelectorAll("form[data-form]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(form, event.submitter, changed);
    });
  }
}

const marks = new WeakMap(); // of a form with an editor: what marks a place of its text

/** Has `mark(line, column, text)` show where the text of a form is wrong. */
export function markIn(form, mark) {
  marks.set(form, mark);
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
      const later = area?.value === sent ? [] : [" The text has changed since it was sent."];
      result.append(element("p", { class: "banner good" }, ...said, ...later));
      changed();
    }
  } catch (error) {
    const place = error.line ? ` (line ${error.line}, column ${error.column})` : "";
    const hint = error.hint ? ` Try: ${error.hint}.` : "";
    result.replaceChildren(element("p", { class: "banner bad" }, `${error.message}${place}.${hint}`));
    // not in later input
    if (!error.line || area?.value !== sent) return;
    const mark = marks.get(form) ?? ((line, column) => select(area, line, column));
    mark(error.line, error.column, error.message);
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

const keys = new WeakMap(); // by form: its last content and key; the same content sent again is stored once

async function publish(form, submitter) {
  const { type, body } = form.elements;
  const tried = form.querySelector(".tried");
  tried.replaceChildren();
  if (submitter.value === "check") {
    const checked = await request(form, `${form.dataset.to}?check`, "POST", body.value, { "Content-Type": type.value, ...ACCEPT });
    const count = await showMessages(checked, tried, (number) => `message ${number}`);
    const invalid = Number(checked.headers.get(INVALID));
    const refused = invalid ? ` ${invalid} more do not conform to the shapes of the stream.` : "";
    return [`Nothing is wrong. It would add ${describedCount(count)}.${refused} Nothing was published.`];
  }
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

async function register(form, submitter) {
  const { query, name, from, source, every, preview } = form.elements;
  const isTried = submitter.value === "preview";
  const tried = form.querySelector(".tried");
  tried.replaceChildren();
  const parameters = new URLSearchParams();
  if (isTried) parameters.set("preview", preview.value);
  if (from.value && !isTried) parameters.set("from", from.value);
  if (source?.value) parameters.set("source", source.value);
  if (every?.value) parameters.set("every", every.value);
  const headers = { "Content-Type": "application/sparql-query", ...(isTried ? ACCEPT : {}) };
  if (name.value) headers.Slug = name.value;
  const url = parameters.size ? `${form.dataset.to}?${parameters}` : form.dataset.to;
  const answer = await request(form, url, "POST", query.value, headers);
  if (isTried) {
    const count = await showMessages(answer, tried, (number) => `message ${number}`);
    const elements = countOf(Number(answer.headers.get(ELEMENTS)), "element");
    return [`It has read ${elements}, and gives out ${describedCount(count)}. Nothing was registered.`];
  }
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
