// The query section: asks an endpoint, shows messages as they come, and says how the answer ended.

import { Cards } from "./cards.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { LOG_TYPE, LogError, piecesOf, readLog, syntaxOf } from "./log.js";
import { element } from "./message-view.js";
import { ROOT, Refusal, ask, urlOf } from "./server.js";
import { asCommand, asCurl, asPython } from "./snippets.js";
import { graphAnswerElement, resultElement } from "./tables.js";
import { COMMON_PREFIXES, Prefixes } from "./terms.js";

const SOLUTIONS_TYPE = "application/sparql-results+json";
const GRAPH_TYPE = "application/n-triples, text/turtle;q=0.5, */*;q=0.1";
// whatever the query is: messages of a CONSTRUCT, solutions, or a graph
const ANY_TYPE = `${LOG_TYPE}, ${SOLUTIONS_TYPE};q=0.9, application/n-triples;q=0.8, text/turtle;q=0.5, */*;q=0.1`;

const $ = (id) => document.getElementById(id);

export class QuerySection {
  constructor(server) {
    this.server = server;
    this.cards = new Cards($("cards"), { changed: () => this.showFigures() });
    this.editor = new Editor($("editor"), { run: () => this.run(), changed: () => this.edited() });
    this.running = null; // an AbortController
    this.fill();
    this.listen();
    this.restore();
  }

  // --- what can be chosen ---

  fill() {
    for (const { name, path } of this.server.endpoints) {
      $("endpoint").append(element("option", { value: path }, name === "" ? `/${path}` : name));
    }
    for (const [index, { name }] of EXAMPLES.entries()) {
      $("examples").append(element("option", { value: index }, name));
    }
    const groups = [
      ["messages", this.server.logs.map((log) => [log.type, log.syntax ? `${log.name}, ${log.type.replace(/^[^;]*; /, "")}` : log.name, log.extension])],
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

  listen() {
    $("run").addEventListener("click", () => this.run());
    $("stop").addEventListener("click", () => this.running?.abort());
    $("endpoint").addEventListener("change", () => this.edited());
    $("examples").addEventListener("change", (event) => {
      const example = EXAMPLES[event.target.value];
      event.target.value = "";
      if (example !== undefined) this.editor.replace(example.query);
    });
    $("add-prefixes").addEventListener("click", () => this.editor.declare(this.known()));
    $("pause").addEventListener("click", () => this.pause(!this.cards.paused));
    $("filter").addEventListener("input", () => this.cards.show($("filter").value));
    $("keep").addEventListener("change", () => this.cards.keep(Number($("keep").value)));
    $("go").addEventListener("click", () => this.jump());
    $("jump").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.jump();
    });
    $("tab-messages").addEventListener("click", () => this.show("messages"));
    $("tab-graph").addEventListener("click", () => this.showGraph());
    $("download").addEventListener("click", () => this.download());
    for (const kind of ["curl", "python", "command", "link"]) {
      $(`copy-${kind}`).addEventListener("click", () => this.copy(kind));
    }
    $("text-dialog-close").addEventListener("click", () => $("text-dialog").close());
    $("text-dialog-copy").addEventListener("click", () => this.copyText());
  }

  get endpoint() {
    return this.server.endpoints.find(({ path }) => path === $("endpoint").value) ?? this.server.endpoints[0];
  }

  get url() {
    return urlOf(this.endpoint.path);
  }

  /** The prefixes that may be declared: those of the endpoint's settings, then common ones. */
  known() {
    return { ...COMMON_PREFIXES, ...this.endpoint.prefixes };
  }

  edited() {
    $("query-error").hidden = true;
    $("add-prefixes").hidden = this.editor.missing(this.known()).length === 0;
  }

  // --- the query in the URL ---

  /** Takes query and endpoint from the fragment; gives whether there were any. */
  restore() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    const here = location.pathname.slice(ROOT.pathname.length);
    const own = this.server.endpoints.find(({ name, path }) => here === path || (name && here === `${name}/`));
    const wanted = this.server.endpoints.find(({ path }) => path === parameters.get("endpoint")) ?? own;
    if (wanted !== undefined) $("endpoint").value = wanted.path;
    if (parameters.has("query")) this.editor.text = parameters.get("query");
    else if (this.editor.text === "") this.editor.text = EXAMPLES[0].query;
    this.edited();
  }

  /** The fragment that brings query and endpoint back. */
  fragment() {
    return `#${new URLSearchParams({ endpoint: this.endpoint.path, query: this.editor.text })}`;
  }

  // --- asking ---

  async run() {
    this.running?.abort();
    const running = new AbortController();
    this.running = running;
    history.replaceState(null, "", this.fragment());
    this.reset();
    this.begun = performance.now();
    const query = this.editor.text;
    try {
      const response = await ask(this.url, query, ANY_TYPE, running.signal);
      if (this.running !== running) return;
      this.answered = true;
      const type = response.headers.get("Content-Type") ?? "";
      if (syntaxOf(type) !== null) await this.takeLog(response, running);
      else await this.takeOther(response, type, query, running);
    } catch (error) {
      if (this.running === running) this.fail(error, running.signal.aborted);
    } finally {
      if (this.running === running) this.rest();
    }
  }

  reset() {
    this.cards.clear();
    this.cards.prefixes = new Prefixes(this.known(), this.editor.prefixes);
    this.cards.filter = $("filter").value.toLowerCase();
    this.count = this.bytes = 0;
    this.answered = false;
    this.first = this.ended = null;
    this.graph = null;
    this.recent = [];
    $("banner").hidden = $("query-error").hidden = true;
    for (const id of ["figures", "tabs", "messages-view", "graph-view", "table-view", "welcome"]) $(id).hidden = true;
    this.pause(false);
    $("results").setAttribute("aria-busy", "true");
    $("stop").disabled = false;
    this.say("The query runs.");
  }

  rest() {
    this.running = null;
    this.ended ??= performance.now();
    $("results").removeAttribute("aria-busy");
    $("stop").disabled = true;
    this.showFigures();
  }

  async takeLog(response, running) {
    $("figures").hidden = $("tabs").hidden = false;
    this.show("messages");
    const reader = await readLog(this.counted(response.body), (message) => {
      if (this.running !== running) return;
      if (this.first === null) {
        this.first = performance.now();
        this.say("The first message is here.");
      }
      this.count = message.number;
      this.cards.add(message);
    }, syntaxOf(response.headers.get("Content-Type")));
    if (this.running !== running) return;
    const count = `${reader.count.toLocaleString()} ${reader.count === 1 ? "message" : "messages"}`;
    this.banner("good", `Complete: ${count}.`);
    this.say(`Complete: ${count}.`);
  }

  async *counted(body) {
    for await (const bytes of piecesOf(body)) {
      this.bytes += bytes.length;
      this.showSoon();
      yield bytes;
    }
  }

  async takeOther(response, type, query, running) {
    const prefixes = this.cards.prefixes;
    const made = type.startsWith(SOLUTIONS_TYPE)
      ? resultElement(await response.json(), prefixes)
      : await graphAnswerElement(response, prefixes);
    if (this.running !== running) return;
    $("table-view").replaceChildren(made);
    $("table-view").hidden = false;
    this.say("The answer is complete.");
  }

  fail(error, aborted) {
    const got = this.count ? ` What is below are the first ${this.count.toLocaleString()} messages, not the answer.` : "";
    if (aborted) {
      this.banner("warn", `Stopped: the answer is not complete.${got}`);
    } else if (error instanceof Refusal) {
      if (error.line !== null) {
        $("query-error").textContent = `Line ${error.line}, column ${error.column}: ${error.text}`;
        $("query-error").hidden = false;
        this.editor.mark(error.line, error.column);
      }
      this.banner("bad", `Refused (${error.status}): ${error.text}`);
    } else if (this.answered) {
      const why = error instanceof LogError ? `: ${error.message}` : ": the connection ended within it";
      this.banner("bad", `The answer was cut${why}. It is not complete.${got}`);
    } else {
      this.banner("bad", `The answer failed: ${error.message}.`);
    }
  }

  // --- what is shown ---

  banner(kind, text) {
    $("banner").className = `banner ${kind}`;
    $("banner").textContent = text;
    $("banner").setAttribute("role", kind === "good" ? "note" : "alert");
    $("banner").hidden = false;
  }

  say(text) {
    $("announcement").textContent = text;
  }

  show(view) {
    for (const each of ["messages", "graph"]) {
      $(`${each}-view`).hidden = each !== view;
      $(`tab-${each}`).setAttribute("aria-pressed", String(each === view));
    }
  }

  /** Asks for the same CONSTRUCT as one graph, once it is wanted. */
  async showGraph() {
    this.show("graph");
    if (this.graph !== null) return;
    const asked = (this.graph = {});
    const place = $("graph-view");
    place.replaceChildren(element("p", { class: "note" }, "the query runs again, without messages"));
    const { query } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    let made;
    try {
      made = await graphAnswerElement(await ask(this.url, query ?? this.editor.text, GRAPH_TYPE), this.cards.prefixes);
    } catch (error) {
      const text = error instanceof Refusal ? `Refused (${error.status}): ${error.text}` : `The answer was cut or failed: ${error.message}.`;
      made = element("p", { class: "banner bad", role: "alert" }, text);
    }
    if (this.graph === asked) place.replaceChildren(made);
  }

  showSoon() {
    this.figuresFrame ||= requestAnimationFrame(() => {
      this.figuresFrame = 0;
      this.showFigures();
    });
  }

  showFigures() {
    const now = this.ended ?? performance.now();
    const seconds = (now - this.begun) / 1000;
    $("figure-count").textContent = (this.count ?? 0).toLocaleString();
    $("figure-rate").textContent = this.count && seconds > 0 ? Math.round(this.count / seconds).toLocaleString() : "–";
    $("figure-first").textContent = this.first === null ? "–" : duration(this.first - this.begun);
    $("figure-total").textContent = this.ended === null ? "…" : duration(now - this.begun);
    $("figure-bytes").textContent = (this.bytes ?? 0).toLocaleString();
    const kept = this.cards.messages();
    const waiting = this.cards.paused ? "; paused, and still receiving" : "";
    $("kept").textContent = kept.length
      ? `kept: ${kept[0].number.toLocaleString()} to ${kept.at(-1).number.toLocaleString()}${waiting}`
      : "";
  }

  pause(paused) {
    this.cards.pause(paused);
    $("pause").setAttribute("aria-pressed", String(paused));
    $("pause").textContent = paused ? "Go on" : "Pause";
    if (this.begun !== undefined) this.showFigures();
  }

  jump() {
    const number = Number($("jump").value);
    if (!Number.isInteger(number) || number < 1) return;
    $("filter").value = "";
    if (!this.cards.jump(number)) this.say(($("kept").textContent = `message ${number} is not among those that are kept`));
  }

  // --- taking it away ---

  /** Saves the answer in the chosen format as the server gives it; one that was cut is not saved. */
  async download() {
    const type = $("format").value;
    const { extension } = $("format").selectedOptions[0].dataset;
    $("download").disabled = true;
    try {
      const blob = await (await ask(this.url, this.editor.text, type)).blob();
      const url = URL.createObjectURL(blob);
      element("a", { href: url, download: `messages.${extension}` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
      this.say("The answer is downloaded.");
    } catch (error) {
      const text = error instanceof Refusal ? `Refused (${error.status}): ${error.text}` : "The answer was cut or failed: nothing is saved.";
      this.banner("bad", text);
    } finally {
      $("download").disabled = false;
    }
  }

  copy(kind) {
    const query = this.editor.text;
    const chosen = $("format").selectedOptions[0];
    const log = this.server.logs.find(({ type }) => type === chosen.value);
    const format = log === undefined ? "nq" : log.type;
    const made = {
      curl: () => ["curl", asCurl(this.url, query, chosen.value)],
      python: () => ["Python", asPython(this.url, query)],
      command: () => ["Command line", asCommand(this.url, query, format)],
      link: () => ["Link to this page", new URL(this.fragment(), location.href).href],
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

function duration(milliseconds) {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
