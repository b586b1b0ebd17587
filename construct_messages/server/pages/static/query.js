// The query section: asks an endpoint, shows messages as they come, and says how the answer ended.
//
// The form is what is asked next, the results are of what was asked last, which `asked` holds: nothing of the results
// reads the form.

import { Cards } from "./cards.js";
import { Drafts, keptDraft } from "./drafts.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { Export } from "./export.js";
import { CutError, LOG_TYPE, LogError, piecesOf, readLog, syntaxOf } from "./log.js";
import { button, element } from "./message-view.js";
import { ROOT, Refusal, ask, urlOf } from "./server.js";
import { SolutionsReader } from "./solutions.js";
import { SolutionTable, countOf, graphElementOf, isGraph, readGraph, textElement, truthElement } from "./tables.js";
import { COMMON_PREFIXES, Prefixes } from "./terms.js";

const SOLUTIONS_TYPE = "application/sparql-results+json";
const GRAPH_TYPE = "application/n-triples, text/turtle;q=0.5, */*;q=0.1";
// whatever the query is: messages of a CONSTRUCT, solutions, or a graph
const ANY_TYPE = `${LOG_TYPE}, ${SOLUTIONS_TYPE};q=0.9, application/n-triples;q=0.8, text/turtle;q=0.5, */*;q=0.1`;
const LONGEST_LINK = 1_000_000; // characters of a fragment; Chromium takes two million of a URL

const $ = (id) => document.getElementById(id);

export class QuerySection {
  constructor(server) {
    this.server = server;
    this.asked = null; // what the results answer: {endpoint, url, query, prefixes}
    this.running = null; // an AbortController
    this.filtered = false; // whether what a filter found is still to be announced
    this.graph = null; // an AbortController, once one graph was asked for
    this.cards = new Cards($("cards"), { changed: () => this.showFigures() });
    this.editor = new Editor($("editor"), {
      run: () => this.run(),
      changed: () => this.edited(),
      endpoint: () => ({ url: this.url, prefixes: this.known() }),
    });
    this.export = new Export(server, {
      form: () => ({ url: this.url, query: this.editor.text }),
      link: () => new URL(this.fragment(), location.href).href,
    });
    this.fill();
    this.drafts = new Drafts(() => ({ endpoint: this.endpoint.path, query: this.editor.text }));
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
  }

  listen() {
    $("ask").addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
    $("format-query").addEventListener("click", () => this.editor.format());
    $("stop").addEventListener("click", () => this.running?.abort());
    $("endpoint").addEventListener("change", () => this.edited());
    $("examples").addEventListener("change", (event) => {
      const example = EXAMPLES[event.target.value];
      event.target.value = "";
      if (example !== undefined) this.editor.replace(example.query);
    });
    $("add-prefixes").addEventListener("click", () => this.editor.declare(this.known()));
    $("pause").addEventListener("click", () => this.pause(!this.cards.paused));
    $("filter").addEventListener("input", () => {
      this.filtered = true;
      this.cards.show($("filter").value);
      this.showFigures();
    });
    $("keep").addEventListener("change", () => this.cards.keep(Number($("keep").value)));
    $("go").addEventListener("click", () => this.jump());
    $("jump").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.jump();
    });
    $("tab-messages").addEventListener("click", () => this.show("messages"));
    $("tab-graph").addEventListener("click", () => this.showGraph());
    $("bring-back").addEventListener("click", () => this.bringBack());
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
    this.export.offer(this.editor.form);
    this.drafts.changed();
    this.compare();
  }

  /** Whether the form holds what the results answer. */
  get isAsked() {
    return this.asked.query === this.editor.text && this.asked.endpoint === this.endpoint.path;
  }

  /** Says so where the results answer something else than the form holds. */
  compare() {
    $("asked").hidden = this.asked === null || this.isAsked;
  }

  /** Puts what the results answer into the form. */
  bringBack() {
    $("endpoint").value = this.asked.endpoint;
    this.editor.replace(this.asked.query);
    this.edited();
  }

  // --- the query in the URL ---

  /** Takes query and endpoint from what was typed here before, or else from the fragment. */
  restore() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    const draft = keptDraft() ?? { endpoint: parameters.get("endpoint"), query: parameters.get("query") };
    const here = location.pathname.slice(ROOT.pathname.length);
    const own = this.server.endpoints.find(({ name, path }) => here === path || (name && here === `${name}/`));
    const wanted = this.server.endpoints.find(({ path }) => path === draft.endpoint) ?? own;
    if (wanted !== undefined) $("endpoint").value = wanted.path;
    if (draft.query !== null) this.editor.text = draft.query;
    else if (this.editor.text === "") this.editor.text = EXAMPLES[0].query;
    this.edited();
  }

  /** The page has moved to another entry of the browser's history, which has a query of its own, or is to keep ours. */
  moved() {
    if (keptDraft() !== null || location.hash.includes("query=")) this.restore();
    else this.drafts.save();
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
    this.asked = {
      endpoint: this.endpoint.path,
      url: this.url,
      query: this.editor.text,
      prefixes: new Prefixes(this.known(), this.editor.prefixes),
    };
    const fragment = this.fragment();
    this.drafts.save(fragment.length > LONGEST_LINK ? "#" : fragment);
    this.reset();
    try {
      const response = await ask(this.asked.url, this.asked.query, ANY_TYPE, running.signal);
      if (this.running !== running) return;
      this.answered = true;
      $("progress").hidden = true;
      const type = response.headers.get("Content-Type") ?? "";
      const whole = syntaxOf(type) === null ? this.takeOther(response, type, running) : this.takeLog(response, running);
      const complete = `Complete: ${await whole}.`;
      if (this.running !== running) return;
      this.banner("good", complete);
      this.say(complete);
    } catch (error) {
      if (this.running === running) this.fail(error, running.signal.aborted);
    } finally {
      if (this.running === running) this.rest();
    }
  }

  reset() {
    this.graph?.abort();
    this.graph = null;
    this.cards.clear();
    this.cards.prefixes = this.asked.prefixes;
    this.cards.filter = $("filter").value.toLowerCase();
    this.count = this.bytes = 0;
    this.what = "message";
    this.answered = false;
    this.begun = performance.now();
    this.first = this.ended = null;
    $("banner").hidden = $("query-error").hidden = true;
    for (const id of ["figures", "tabs", "messages-view", "graph-view", "table-view", "welcome"]) $(id).hidden = true;
    this.pause(false);
    $("results").setAttribute("aria-busy", "true");
    $("stop").disabled = false;
    this.compare();
    this.say("The query runs.");
    clearInterval(this.timer);
    this.timer = setInterval(() => this.showFigures(), 1000);
    $("progress").hidden = false;
    this.showFigures();
  }

  rest() {
    this.running = null;
    clearInterval(this.timer);
    this.ended = performance.now();
    $("progress").hidden = true;
    $("results").removeAttribute("aria-busy");
    $("stop").disabled = true;
    this.showFigures();
  }

  /** Takes a log, and returns in words how much it was. */
  async takeLog(response, running) {
    $("figures").hidden = $("tabs").hidden = false;
    this.show("messages");
    const reader = await readLog(this.counted(response.body, running), (message) => {
      if (this.running !== running) return;
      this.came(message.number);
      this.cards.add(message);
    }, syntaxOf(response.headers.get("Content-Type")));
    return countOf(reader.count, "message");
  }

  /** Takes what is no log, and returns in words how much it was. */
  async takeOther(response, type, running) {
    const pieces = this.counted(response.body, running);
    if (type.startsWith(SOLUTIONS_TYPE)) return this.takeSolutions(pieces, running);
    if (!isGraph(type)) {
      const text = await textElement(pieces, type);
      if (this.running === running) this.showTable(text);
      return countOf(this.bytes, "byte");
    }
    this.what = "triple";
    $("figures").hidden = false;
    const graph = await readGraph(pieces, (count) => {
      if (this.running === running && count) this.came(count);
    });
    if (this.running === running) this.showTable(graphElementOf(graph, this.asked.prefixes));
    return countOf(graph.statements, "triple");
  }

  async takeSolutions(pieces, running) {
    const table = new SolutionTable(this.asked.prefixes);
    const reader = new SolutionsReader((solution, characters) => {
      if (table.variables === null) table.columns(reader.variables ?? Object.keys(solution));
      table.add(solution, characters);
    });
    for await (const bytes of pieces) {
      reader.feed(bytes);
      if (this.running !== running) return "";
      if (table.count === 0) continue;
      if (this.count === 0) {
        this.what = "solution";
        $("figures").hidden = false;
        this.showTable(table.element);
      }
      this.came(table.count);
      table.show();
    }
    const document = reader.close();
    if ("boolean" in document) {
      this.showTable(truthElement(document.boolean));
      return document.boolean ? "yes" : "no";
    }
    const variables = document.head?.vars ?? table.variables ?? [];
    if (String(table.variables) !== String(variables)) table.columns(variables);
    this.showTable(table.element);
    table.show();
    return countOf(table.count, "solution");
  }

  showTable(made) {
    $("table-view").replaceChildren(made);
    $("table-view").hidden = false;
  }

  /** Notes that so many of the answer have come. */
  came(count) {
    this.count = count;
    if (this.first !== null) return;
    this.first = performance.now();
    this.say(`The first ${this.what} is here.`);
  }

  async *counted(body, running) {
    for await (const bytes of piecesOf(body)) {
      if (this.running !== running) return;
      this.bytes += bytes.length;
      this.showSoon();
      yield bytes;
    }
  }

  fail(error, aborted) {
    const had = this.count && this.what !== "triple"; // of a graph nothing is shown before its end
    const got = had ? ` Only its beginning is below: ${countOf(this.count, this.what)}.` : "";
    if (aborted) {
      this.banner("warn", `Stopped: the answer is not complete.${got}`);
    } else if (error instanceof Refusal) {
      if (error.line !== null) {
        $("query-error").textContent = `Line ${error.line}, column ${error.column}: ${error.text}`;
        $("query-error").hidden = false;
        if (this.isAsked) this.editor.mark(error.line, error.column, error.text);
      }
      this.banner("bad", `Refused (${error.status}): ${error.text}`);
    } else if (error instanceof CutError) {
      this.banner("bad", `The answer was cut: ${error.message}. It is not complete.${got}`);
    } else if (error instanceof LogError) {
      this.banner("bad", `The answer cannot be read: ${error.message}.${got}`);
    } else {
      const whose = this.answered ? "The page failed to show the answer" : "The query failed";
      this.banner("bad", `${whose}: ${error.message}.${got}`);
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

  /** Asks what was asked again, as one graph, once it is wanted. */
  async showGraph() {
    this.show("graph");
    if (this.graph !== null) return;
    const { signal } = (this.graph = new AbortController());
    const { url, query, prefixes } = this.asked;
    const place = $("graph-view");
    const begun = performance.now();
    const note = element("p", { class: "note" });
    let count = 0;
    const tick = () => {
      const seconds = Math.round((performance.now() - begun) / 1000);
      note.textContent = `The query runs again, without messages: ${countOf(count, "triple")} in ${seconds} s so far.`;
    };
    tick();
    const timer = setInterval(tick, 1000);
    place.replaceChildren(note, button("Stop", () => this.graph.abort()));
    let made;
    let isWhole = false;
    try {
      const response = await ask(url, query, GRAPH_TYPE, signal);
      const type = response.headers.get("Content-Type") ?? "";
      const pieces = piecesOf(response.body);
      made = isGraph(type)
        ? graphElementOf(await readGraph(pieces, (statements) => (count = statements)), prefixes)
        : await textElement(pieces, type);
      isWhole = true;
    } catch (error) {
      const refused = error instanceof Refusal ? `Refused (${error.status}): ${error.text}` : null;
      const failed = refused ?? `The answer was cut or failed: ${error.message}.`;
      const text = signal.aborted ? "Stopped: the answer is not complete." : failed;
      made = element("p", { class: "banner bad", role: "alert" }, text);
    } finally {
      clearInterval(timer);
    }
    if (this.graph?.signal !== signal) return;
    if (!isWhole) this.graph = null; // the next click asks again
    place.replaceChildren(made);
  }

  showSoon() {
    this.figuresFrame ||= requestAnimationFrame(() => {
      this.figuresFrame = 0;
      this.showFigures();
    });
  }

  showFigures() {
    if (this.asked === null) return;
    const now = this.ended ?? performance.now();
    const seconds = (now - this.begun) / 1000;
    const whole = Math.floor(seconds);
    $("progress").textContent = `The query runs at /${this.asked.endpoint}: no answer yet, after ${whole} s.`;
    $("figure-what").textContent = `${this.what}s`;
    $("figure-count").textContent = this.count.toLocaleString();
    $("figure-rate").textContent = this.count && seconds > 0 ? Math.round(this.count / seconds).toLocaleString() : "–";
    $("figure-first").textContent = this.first === null ? "–" : duration(this.first - this.begun);
    $("figure-total").textContent = this.ended === null ? `${whole} s …` : duration(now - this.begun);
    $("figure-bytes").textContent = this.bytes.toLocaleString();
    $("kept").textContent = `${this.cards.described(this.count)}${this.heldBack()}`;
    if (this.filtered && this.cards.isDone) {
      this.filtered = false;
      this.say($("kept").textContent);
    }
  }

  /** What a pause holds back, in words. */
  heldBack() {
    if (!this.cards.paused) return "";
    if (this.ended === null) return "; paused, and still receiving";
    return this.cards.isDone ? "; paused" : "; paused: not all of them are shown";
  }

  pause(paused) {
    this.cards.pause(paused);
    $("pause").setAttribute("aria-pressed", String(paused));
    $("pause").textContent = paused ? "Go on" : "Pause";
    this.showFigures();
  }

  jump() {
    const number = Number($("jump").value);
    if (!Number.isInteger(number) || number < 1) return;
    $("filter").value = "";
    if (!this.cards.jump(number)) this.say(($("kept").textContent = `message ${number} is not among those that are kept`));
  }
}

function duration(milliseconds) {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
