// The query column: the next request. The results are those of the last request, which is in `asked`: see results.js.

import { Drafts, keptDraft } from "./drafts.js";
import { Editor, READ } from "./editor.js";
import { examplesOf, lookAt, parametersOf } from "./examples.js";
import { Export } from "./export.js";
import { element } from "./elements.js";
import { showLanding } from "./landing.js";
import { Layout } from "./layout.js";
import { Library } from "./library.js";
import { OptionFields } from "./options.js";
import { COMMON_PREFIXES, Prefixes } from "./prefixes.js";
import { OPTIONS, fragmentOf, isSame, linkIn, requestIn } from "./request.js";
import { Results } from "./results.js";
import { ROOT, urlOf } from "./server.js";
import { declaredPrefixes, queryForm, tokens } from "./sparql.js";
import { BrowserStorage } from "./storage.js";
import { Tabs } from "./tabs.js";

const SETTLED = 600; // milliseconds after which an endpoint that was chosen is asked for a sample
const LONGEST_LINK = 1_000_000; // characters of a fragment; Chromium takes two million of a URL

const $ = (id) => document.getElementById(id);

export class QuerySection {
  constructor(server) {
    this.server = server;
    this.asked = null; // what the results answer: {request, form, endpoint, url, query, parameters, further, prefixes, run}
    this.isShowing = false; // whether the form is filled by the page
    this.looks = new Map(); // by path of an endpoint: what its data have
    const storage = (this.storage = new BrowserStorage(() => localStorage, "run"));
    this.layout = new Layout(storage);
    this.results = new Results({
      refused: (...said) => this.refused(...said),
      settled: ({ run, form }, { count, ...figures }) => {
        this.library.ended(run, count || form === "CONSTRUCT" ? { count, ...figures } : figures);
        this.drafts.changed();
      },
      viewed: () => this.viewed(),
    });
    this.options = new OptionFields(() => this.edited());
    this.editor = new Editor($("editor"), {
      run: () => this.runShown(),
      changed: (isOther) => this.edited(isOther),
      endpoint: () => ({ url: this.url, prefixes: this.known() }),
    });
    this.export = new Export(server, {
      form: () => ({ url: this.url, further: this.further, ...this.request }),
      link: () => new URL(fragmentOf(this.request, this.view), `${location.origin}${location.pathname}`).href,
    });
    this.library = new Library(storage, {
      current: () => this.request,
      open: (request) => this.open(request),
      opened: () => this.tabs.open.map(({ request }) => request),
    });
    this.tabs = new Tabs($("open-queries"), {
      storage,
      session: new BrowserStorage(() => sessionStorage),
      chosen: (request) => this.show(request),
      closed: (request) => this.keep(request),
    });
    this.fill();
    this.drafts = new Drafts(() => this.kept());
    this.listen();
    this.begin();
  }

  /** Shows an explanation of messages until the first request; it asks the endpoint `after` milliseconds. */
  land({ after = 0 } = {}) {
    if (this.asked !== null) return;
    const choose = (example) => {
      this.choose(example);
      this.runShown();
    };
    this.landing?.abort();
    const { signal } = (this.landing = new AbortController());
    const { server, endpoint } = this;
    const looked = this.look(endpoint, signal, after);
    showLanding($("landing"), { server, endpoint, examples: () => this.examples, looked, choose, signal });
  }

  /** Looks at the data of an endpoint once, for examples that fit them. */
  async look(endpoint, signal, after) {
    await new Promise((done) => setTimeout(done, after));
    if (signal.aborted || this.looks.has(endpoint.path)) return;
    const before = this.exampleOf(endpoint, examplesOf(endpoint)[0]);
    const look = await lookAt(urlOf(endpoint.path), this.further, signal);
    if (look === null) return;
    this.looks.set(endpoint.path, look);
    if (endpoint !== this.endpoint) return;
    this.fillExamples();
    if (isSame(this.request, before)) this.offerFirst();
  }

  // --- choices --------------

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
    return examplesOf(this.endpoint, this.looks.get(this.endpoint.path));
  }

  /** The request of an example. */
  exampleOf(endpoint, example) {
    return { endpoint: endpoint.path, query: example.query, parameters: parametersOf(example) };
  }

  /** Puts an example in the place of the query, as an edit that can be undone. */
  choose(example) {
    this.keep(this.request);
    this.options.offered = null;
    this.editor.replace(example.query);
    this.options.parameters = this.options.offered = parametersOf(example);
    this.results.views.wanted = example.view ?? null;
    this.edited();
  }

  listen() {
    $("ask").addEventListener("submit", (event) => {
      event.preventDefault();
      this.runShown();
    });
    $("format-query").addEventListener("click", () => this.editor.format());
    $("endpoint").addEventListener("change", () => {
      this.moveTo(this.endpoint);
      this.land({ after: SETTLED });
    });
    $("examples").addEventListener("change", (event) => {
      const example = this.examples[event.target.value];
      event.target.value = "";
      if (example !== undefined) this.choose(example);
    });
    $("add-prefixes").addEventListener("click", () => this.editor.declare(this.known()));
    $("bring-back").addEventListener("click", () => this.bringBack());
    $("new-query").addEventListener("click", () => {
      this.open({ endpoint: this.endpoint.path, query: "", parameters: [] });
      this.editor.view.focus();
    });
    $("close-query").addEventListener("click", () => this.close());
  }

  get endpoint() {
    return this.server.endpoints.find(({ path }) => path === $("endpoint").value) ?? this.server.endpoints[0];
  }

  /** Another endpoint was chosen: an example of the one before, which was not changed, makes room for one of its own. */
  moveTo(endpoint) {
    const before = this.tabs.active.request;
    const from = this.server.endpoints.find(({ path }) => path === before.endpoint) ?? endpoint;
    const old = examplesOf(from, this.looks.get(from.path)).map((example) => this.exampleOf(from, example));
    this.fillExamples();
    if (old.some((each) => isSame(each, before))) this.offerFirst();
    else this.edited();
  }

  /** Puts the first example of the endpoint in the place of another one that was not changed. */
  offerFirst() {
    const request = this.exampleOf(this.endpoint, this.examples[0]);
    this.tabs.take(request);
    this.show(request);
  }

  get url() {
    return urlOf(this.endpoint.path);
  }

  /** What the form holds. */
  get request() {
    return { endpoint: this.endpoint.path, query: this.editor.text, parameters: this.options.parameters };
  }

  /** The parameters that are of other answers than messages, too. */
  get further() {
    return this.options.parameters.filter(([name]) => !OPTIONS.includes(name));
  }

  /** The view of the results; null: the usual one. */
  get view() {
    const { view } = this.results.views;
    return view === "messages" ? null : view;
  }

  /** The prefixes that may be declared: those of the endpoint's settings, then common ones. */
  known() {
    return { ...COMMON_PREFIXES, ...this.endpoint.prefixes };
  }

  edited(isOther = false) {
    if (this.isShowing) return;
    if (isOther) this.options.forget();
    else this.options.follow((name) => this.editor.variables.has(name));
    this.tabs.take(this.request);
    this.drafts.changed();
    this.changed();
  }

  /** Shows what depends on what the form holds. */
  changed() {
    $("query-error").hidden = true;
    $("add-prefixes").hidden = this.editor.missing(this.known()).length === 0;
    $("close-query").hidden = this.tabs.open.length < 2;
    this.export.offer(this.editor.form);
    this.options.offer(this.editor.form);
    this.compare();
  }

  // --- what the form holds ---

  /** Keeps the queries that are open, and returns what the page's entry in the history keeps. */
  kept() {
    this.tabs.save();
    $("storage-note").hidden = !this.storage.isFull;
    const asked = this.results.outcome === "stopped" ? null : (this.asked?.request ?? null);
    return { tab: this.tabs.active.id, asked, ...this.request };
  }

  /** Keeps a request that leaves the form, unless it is there to be chosen. */
  keep(request) {
    if (!this.examples.some(({ query }) => query === request.query)) this.library.keep(request);
  }

  /** Puts a request into the form. Its text is one of its own, whose edits are no edits of the one before. */
  show({ endpoint, query, parameters }) {
    this.isShowing = true;
    const wanted = this.server.endpoints.find(({ path }) => path === endpoint);
    if (wanted !== undefined) $("endpoint").value = wanted.path;
    this.fillExamples();
    this.options.parameters = parameters;
    const example = this.examples.find((each) => each.query === query);
    const isExample = example !== undefined && isSame(this.exampleOf(this.endpoint, example), { endpoint, query, parameters });
    this.options.offered = isExample ? parameters : null;
    if (this.editor.text !== query) this.editor.text = query;
    this.isShowing = false;
    this.drafts.changed();
    this.changed();
  }

  /** Opens a request beside those that are open. */
  open(request) {
    this.tabs.add(request);
    this.show(request);
  }

  close() {
    this.tabs.close();
    if (this.tabs.active === null) this.tabs.add({ endpoint: this.endpoint.path, query: "", parameters: [] });
    this.tabs.save();
    this.show(this.tabs.active.request);
    this.editor.view.focus();
  }

  /** Whether the form has the request of the results. */
  get isAsked() {
    return isSame(this.asked.request, this.request);
  }

  /** Shows whether the results are those of another request than the form has. */
  compare() {
    $("asked").hidden = this.asked === null || this.isAsked;
  }

  /** Puts what the results answer into the form: where it is open, or else in the place of what is there. */
  bringBack() {
    const { endpoint, query, parameters } = this.asked.request;
    const there = this.tabs.open.find(({ request }) => isSame(request, this.asked.request));
    if (there !== undefined) {
      this.tabs.choose(there);
      return;
    }
    $("endpoint").value = endpoint;
    this.options.offered = null;
    this.options.parameters = parameters;
    this.editor.replace(query);
    this.edited();
  }

  // --- the page's entry in the history of the browser ---

  /** The endpoint that the path of the page names; undefined: none. */
  get own() {
    const here = location.pathname.slice(ROOT.pathname.length);
    return this.server.endpoints.find(({ name, path }) => here === path || (name && here === `${name}/`));
  }

  /** What the address names, at the endpoint of its path where it names no other. */
  get link() {
    const link = linkIn(location);
    const known = this.server.endpoints.find(({ path }) => path === link.endpoint);
    return { ...link, endpoint: (known ?? this.own ?? this.server.endpoints[0]).path };
  }

  /** Begins with what was typed here before, with the query of the address, with what is open, or with an example. What was
   *  run in this entry of the history is run again; the query of a link is not. */
  begin() {
    const typed = this.editor.text; // before the page was ready
    const { own, link } = this;
    const endpoint = own ?? this.server.endpoints[0];
    this.results.views.wanted = link.view;
    if (this.restoreDraft()) {
      // it may be the query of the address, or may have been changed since
    } else if (link.query !== null) {
      this.open({ endpoint: link.endpoint, query: link.query, parameters: link.parameters });
    } else if (typed !== "") {
      this.open({ endpoint: endpoint.path, query: typed, parameters: [] });
    } else {
      const { active, open } = this.tabs;
      const isOf = ({ request }) => own === undefined || request.endpoint === own.path;
      const found = [active, ...open].find((each) => each !== null && isOf(each));
      this.open(found === undefined ? this.exampleOf(endpoint, examplesOf(endpoint)[0]) : found.request);
      this.land();
    }
    const asked = requestIn(keptDraft()?.asked);
    if (asked !== null) this.run(asked);
    else if (link.isAsked && isSame(link, this.request)) this.run();
  }

  /** Shows what was typed in this entry; false: nothing was. */
  restoreDraft() {
    const draft = keptDraft();
    const request = requestIn(draft);
    if (request === null) return false;
    if (!this.tabs.select(draft.tab)) this.tabs.add(request);
    else if (!isSame(this.tabs.active.request, request)) {
      this.keep(this.tabs.active.request); // it was typed there later
      this.tabs.take(request);
    }
    this.show(request);
    return true;
  }

  /** The page has moved to another entry of the browser's history, which has a query of its own, or is to keep ours. */
  moved() {
    if (this.restoreDraft()) return;
    const { endpoint, query, parameters } = this.link;
    if (query === null) this.drafts.save();
    else this.open({ endpoint, query, parameters });
  }

  /** Puts what is run into the address: of this entry where that has no query, else of the next one. */
  address() {
    const { request, link } = this;
    if (link.query !== null && isSame(link, request)) {
      this.drafts.save();
      return;
    }
    const { endpoint, query, parameters } = link;
    const before = query === null ? null : { tab: this.tabs.active.id, endpoint, query, parameters };
    const fragment = fragmentOf(request, this.results.views.wanted);
    this.drafts.save(`${location.pathname}${fragment.length > LONGEST_LINK ? "#" : fragment}`, { before });
  }

  /** Another view was chosen: the address has it where it has the request that is shown. */
  viewed() {
    const { link } = this;
    if (link.query === null || !isSame(link, this.asked.request)) return;
    if (!link.isAsked) this.drafts.save(fragmentOf(this.asked.request, this.view));
    else this.drafts.save(`${location.pathname}${location.search}${this.view === null ? "" : `#view=${this.view}`}`);
  }

  // --- asking ---

  /** Runs what the form has, and shows where its answer comes. */
  runShown() {
    this.run();
    this.layout.reveal();
  }

  /** Runs a request: that of the form, unless another one was run here before. */
  run(request = this.request) {
    const found = tokens(request.query.slice(0, READ));
    const form = queryForm(found);
    const endpoint = this.server.endpoints.find(({ path }) => path === request.endpoint) ?? this.endpoint;
    const further = request.parameters.filter(([name]) => !OPTIONS.includes(name));
    this.asked = {
      ...request,
      request,
      url: urlOf(endpoint.path),
      form,
      further,
      parameters: form === null || form === "CONSTRUCT" ? request.parameters : further,
      prefixes: new Prefixes(COMMON_PREFIXES, endpoint.prefixes, declaredPrefixes(found)),
      run: this.library.began(request),
    };
    $("query-error").hidden = true;
    this.compare();
    this.landing?.abort();
    $("landing").replaceChildren();
    this.results.run(this.asked);
    if (this.isAsked) this.address();
  }

  /** Shows the server's error in the query, and marks its position while the form still has the query. */
  refused(line, column, text) {
    $("query-error").textContent = `Line ${line}, column ${column}: ${text}`;
    $("query-error").hidden = false;
    if (this.layout.isFolded) this.layout.fold(false);
    if (this.isAsked) this.editor.mark(line, column, text);
  }
}
