// The query column: what is asked next. The results are of what was asked last, which `asked` holds: see results.js.

import { Drafts, keptDraft } from "./drafts.js";
import { Editor } from "./editor.js";
import { examplesOf, parametersOf } from "./examples.js";
import { Export } from "./export.js";
import { element } from "./elements.js";
import { showLanding } from "./landing.js";
import { COMMON_PREFIXES, Prefixes } from "./prefixes.js";
import { Results } from "./results.js";
import { ROOT, urlOf } from "./server.js";

const SETTLED = 600; // milliseconds after which an endpoint that was chosen is asked for a sample
const LONGEST_LINK = 1_000_000; // characters of a fragment; Chromium takes two million of a URL

const $ = (id) => document.getElementById(id);

export class QuerySection {
  constructor(server) {
    this.server = server;
    this.asked = null; // what the results answer: {endpoint, url, query, prefixes}
    this.results = new Results({ refused: (...said) => this.refused(...said) });
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
    if (keptDraft() === null && !location.hash.includes("query=")) this.land();
  }

  /** Shows what a message is, until something is asked. */
  land({ after = 0 } = {}) {
    if (this.asked !== null) return;
    const choose = (example) => {
      this.editor.replace(example.query);
      this.run();
    };
    this.landing?.abort();
    const { signal } = (this.landing = new AbortController());
    const { server, endpoint, examples } = this;
    showLanding($("landing"), { server, endpoint, examples, choose, signal, after });
  }

  // --- what can be chosen ---

  fill() {
    for (const { name, path } of this.server.endpoints) {
      $("endpoint").append(element("option", { value: path }, name === "" ? `/${path}` : name));
    }
  }

  /** Offers the examples of the endpoint. */
  fillExamples() {
    const options = this.examples.map(({ name }, index) => element("option", { value: index }, name));
    $("examples").replaceChildren($("examples").firstElementChild, ...options);
  }

  get examples() {
    return examplesOf(this.endpoint);
  }

  listen() {
    $("ask").addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
    $("format-query").addEventListener("click", () => this.editor.format());
    $("endpoint").addEventListener("change", () => {
      this.fillExamples();
      this.edited();
      this.land({ after: SETTLED });
    });
    $("examples").addEventListener("change", (event) => {
      const example = this.examples[event.target.value];
      event.target.value = "";
      if (example !== undefined) this.editor.replace(example.query);
    });
    $("add-prefixes").addEventListener("click", () => this.editor.declare(this.known()));
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
    this.fillExamples();
    if (draft.query !== null) this.editor.text = draft.query;
    else if (this.editor.text === "") this.editor.text = this.examples[0].query;
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

  run() {
    this.asked = {
      endpoint: this.endpoint.path,
      url: this.url,
      query: this.editor.text,
      parameters: parametersOf(this.endpoint, this.editor.text),
      prefixes: new Prefixes(COMMON_PREFIXES, this.endpoint.prefixes, this.editor.prefixes),
    };
    const fragment = this.fragment();
    this.drafts.save(fragment.length > LONGEST_LINK ? "#" : fragment);
    $("query-error").hidden = true;
    this.compare();
    this.landing?.abort();
    $("landing").replaceChildren();
    this.results.run(this.asked);
  }

  /** Shows what the server says is wrong with the query, and marks the place while the form still holds it. */
  refused(line, column, text) {
    $("query-error").textContent = `Line ${line}, column ${column}: ${text}`;
    $("query-error").hidden = false;
    if (this.isAsked) this.editor.mark(line, column, text);
  }
}
