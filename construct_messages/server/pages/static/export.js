// Exports the query of the form: its answer as a file, and the query as a command, a program or a link.

import { element } from "./elements.js";
import { Refusal, ask } from "./server.js";
import { asCommand, asCurl, asJavaScript, asPython, asSpark } from "./snippets.js";

const $ = (id) => document.getElementById(id);

// which of the formats a form of query can be answered in
const GROUPS = {
  CONSTRUCT: ["messages", "messages, other versions", "one graph"],
  DESCRIBE: ["one graph"],
  SELECT: ["solutions"],
  ASK: ["solutions"],
};
const FILES = { messages: "messages", "messages, other versions": "messages", "one graph": "graph", solutions: "results" };

export class Export {
  /** `form` returns what the form holds now: {url, query, parameters, further}; `link` returns a URL that brings it back. */
  constructor(server, { form, link }) {
    this.server = server;
    this.form = form;
    this.link = link;
    this.downloading = null; // an AbortController
    this.chosen = new Map(); // by form of query: the format that was chosen last
    this.kind = null;
    this.fill();
    $("format").addEventListener("change", () => this.chosen.set(this.kind, $("format").value));
    $("download").addEventListener("click", () => this.download());
    for (const kind of ["curl", "python", "command", "javascript", "spark", "link"]) {
      $(`copy-${kind}`).addEventListener("click", () => this.copy(kind));
    }
    $("text-dialog-close").addEventListener("click", () => $("text-dialog").close());
    $("text-dialog-copy").addEventListener("click", () => this.copyText());
  }

  fill() {
    const [plain, others] = [true, false].map((is) => this.server.logs.filter((log) => isPlain(log) === is));
    const groups = [
      ["messages", plain.map(({ name, type, extension }) => [type, name, extension])],
      ["messages, other versions", others.map((log) => [log.type, versionName(log), log.extension])],
      ["one graph", this.server.graphs.map(({ name, type, extension }) => [type, name, extension])],
      ["solutions", this.server.solutions.map(({ name, type, extension }) => [type, name, extension])],
    ];
    for (const [label, options] of groups) {
      const made = options.map(([type, name, extension]) =>
        element("option", { value: type, "data-extension": extension }, name),
      );
      $("format").append(element("optgroup", { label }, ...made));
    }
  }

  /** Offers the formats for a form of query; null: the form is unknown. */
  offer(kind) {
    if (this.downloading === null) $("download-state").hidden = true; // it was of another query
    if (kind === this.kind) return;
    this.kind = kind;
    const groups = [...$("format").querySelectorAll("optgroup")];
    for (const group of groups) group.disabled = kind !== null && !GROUPS[kind].includes(group.label);
    const [first] = groups.find((group) => !group.disabled).children;
    $("format").value = this.chosen.get(kind) ?? first.value;
    // they read messages, which only CONSTRUCT has
    for (const id of ["python", "command", "javascript", "spark"]) {
      $(`copy-${id}`).hidden = kind !== null && kind !== "CONSTRUCT";
    }
  }

  // --- downloads ---

  /** Saves the server's answer in the chosen format; a truncated one is not saved. */
  async download() {
    if (this.downloading !== null) {
      this.downloading.abort();
      return;
    }
    const { signal } = (this.downloading = new AbortController());
    const option = $("format").selectedOptions[0];
    const name = `${FILES[option.parentElement.label]}.${option.dataset.extension}`;
    const begun = performance.now();
    const tick = () => {
      const seconds = Math.floor((performance.now() - begun) / 1000);
      this.show(`The query runs: ${seconds} s so far, nothing is saved yet.`);
    };
    const { url, query } = this.form();
    const parameters = this.parametersFor(option.value);
    $("download").textContent = "Cancel download";
    tick();
    const timer = setInterval(tick, 1000);
    try {
      const blob = await (await ask(url, query, option.value, signal, parameters)).blob();
      const href = URL.createObjectURL(blob);
      element("a", { href, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(href), 60_000);
      this.say(`${name} is downloaded: ${blob.size.toLocaleString()} bytes.`);
    } catch (error) {
      if (signal.aborted) this.say("The download was cancelled: nothing is saved.");
      else if (error instanceof Refusal) this.say(`Refused (${error.status}): ${error.text}`, "bad");
      else this.say("The answer was cut or failed: nothing is saved.", "bad");
    } finally {
      clearInterval(timer);
      this.downloading = null;
      $("download").textContent = "Download";
    }
  }

  /** The parameters of a request for a media type: the options of messages are of logs only. */
  parametersFor(type) {
    const { parameters, further } = this.form();
    return this.server.logs.some((log) => log.type === type) ? parameters : further;
  }

  /** Shows the result of a download. */
  say(text, kind = "") {
    this.show(text, kind);
    $("announcement").textContent = text;
  }

  /** Shows the state of a download next to its button: the results are those of another request. */
  show(text, kind = "") {
    $("download-state").className = kind === "" ? "help" : `banner ${kind}`;
    $("download-state").textContent = text;
    $("download-state").hidden = false;
  }

  // --- copies ---

  copy(kind) {
    const { url, query, parameters } = this.form();
    const chosen = $("format").value;
    const log = this.server.logs.find(({ type }) => type === chosen);
    const made = {
      curl: () => ["curl", asCurl(url, query, this.parametersFor(chosen), chosen)],
      python: () => ["Python", asPython(url, query, parameters)],
      command: () => ["Command line", asCommand(url, query, parameters, log === undefined ? "nq" : log.type)],
      javascript: () => ["JavaScript", asJavaScript(url, query, parameters)],
      spark: () => ["Python with Spark", asSpark(url, query, parameters)],
      link: () => ["Link to this page", this.link()],
    }[kind]();
    [$("text-dialog-heading").textContent, $("text-dialog-text").value] = made;
    $("text-dialog-done").textContent = "";
    $("text-dialog").showModal();
    $("text-dialog-text").select();
  }

  async copyText() {
    $("text-dialog-text").select();
    try {
      await navigator.clipboard.writeText($("text-dialog-text").value);
      $("text-dialog-done").textContent = "copied";
    } catch {
      $("text-dialog-done").textContent = "the text is selected: press Ctrl-C"; // no clipboard without HTTPS
    }
  }
}

/** Whether a log is of the plain format: its delimiters are comments, which every reader of RDF ignores. */
function isPlain({ syntax, type }) {
  return !syntax || (syntax === "rdfm" && !/version=1\.(?:1|2-basic)/.test(type));
}

/** The name of a log of another version: `Turtle of RDF 1.1`, or `Turtle with VERSION "1.2-messages"`. */
function versionName({ name, syntax, type }) {
  if (syntax !== "rdfm") return `${name} with VERSION "${syntax}"`;
  return `${name} of RDF ${/version=([^;]*)/.exec(type)[1].replace("-", " ")}`;
}
