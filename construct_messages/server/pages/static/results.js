// The result column: sends the query to an endpoint, shows the answer as it arrives, and reports how it ended.
//
// The results are those of the last request, which is in `asked`: the form is not read here.

import { Cards } from "./cards.js";
import { copyWhole } from "./copying.js";
import { countOf, durationOf } from "./elements.js";
import { CutError, LOG_TYPE, LogError, piecesOf, readLog, syntaxOf } from "./log.js";
import { ResultViews } from "./result-views.js";
import { Refusal, ask } from "./server.js";
import { SolutionsReader } from "./solutions.js";
import { soughtIn, tokens, unboundOf } from "./sparql.js";
import { graphElementOf, isGraph, readGraph, solutionTable, textElement, truthElement } from "./tables.js";
import { emptyPlace, unknownAt } from "./vocabulary.js";

const SOLUTIONS_TYPE = "application/sparql-results+json";
// whatever the query is: messages of a CONSTRUCT, solutions, or a graph
const ANY_TYPE = `${LOG_TYPE}, ${SOLUTIONS_TYPE};q=0.9, application/n-triples;q=0.8, text/turtle;q=0.5, */*;q=0.1`;
const MOST_SOUGHT = 10; // IRIs that are looked for after an empty answer
const LIMIT = /\blimit\s+(\d+)(?:\s+offset\s+\d+)?\s*$/i;

const $ = (id) => document.getElementById(id);

export class Results {
  /** `refused(line, column, text)` is called where the server says what is wrong with the query; `settled(asked, figures)`
   *  when an answer has ended, with {outcome, count, what}; `viewed` when another view is chosen. */
  constructor({ refused = () => {}, settled = () => {}, viewed = () => {} } = {}) {
    this.refused = refused;
    this.settled = settled;
    this.asked = null; // {endpoint, url, query, parameters, further, prefixes}
    this.running = null; // an AbortController
    this.note = ""; // the note that is shown in place of the list
    this.filtered = false; // whether the result of a filter is still to be announced
    this.cards = new Cards($("cards"), { changed: () => this.showSoon() });
    this.views = new ResultViews(this.cards, viewed);
    copyWhole($("results"));
    this.listen();
  }

  listen() {
    $("stop").addEventListener("click", () => this.stop());
    $("filter").addEventListener("input", () => {
      this.filtered = true;
      this.note = "";
      this.cards.show($("filter").value);
      this.showFigures();
    });
    $("jump").addEventListener("change", () => this.jump(Number($("jump").value)));
    $("place").addEventListener("input", () => this.jump(Number($("place").value)));
    document.addEventListener("scroll", () => this.showSoon(), { passive: true });
  }

  stop() {
    this.running?.abort();
  }

  // --- asking ---

  /** Sends the request in `asked`, and shows the answer to its end. */
  async run(asked) {
    if (this.running !== null) {
      this.running.abort();
      this.settled(this.asked, { outcome: "stopped", ...this.figures });
    }
    const running = new AbortController();
    this.running = running;
    this.asked = asked;
    this.reset();
    try {
      const response = await ask(asked.url, asked.query, ANY_TYPE, running.signal, asked.parameters);
      if (this.running !== running) return;
      this.answered = true;
      this.expect(response);
      this.showFigures();
      const type = response.headers.get("Content-Type") ?? "";
      const whole = syntaxOf(type) === null ? this.takeOther(response, type, running) : this.takeLog(response, running);
      const size = await whole;
      if (this.running !== running) return;
      this.outcome = "complete";
      const cause = this.emptyCause();
      const said = this.ending(size, cause, groupedBy(asked.parameters));
      this.banner(cause === null ? "good" : "warn", said);
      this.say(said);
      if (cause !== null) this.explain(cause, asked);
    } catch (error) {
      if (this.running === running) this.fail(error, running.signal.aborted);
    } finally {
      if (this.running === running) this.rest();
    }
  }

  /** What is said of a whole answer, which has a size in words. One with nothing in it is not called complete. */
  ending(size, cause, grouped) {
    const isMessages = this.what === "message" && !this.isOther;
    if (cause !== null && this.count === 0) return `Nothing matched: ${size}${grouped}.`;
    if (isMessages && this.count && this.empty === this.count) {
      return `${size}${grouped}, but ${this.count === 1 ? "it is" : "all of them are"} empty.`;
    }
    const some = isMessages && this.empty ? `, ${this.empty.toLocaleString()} of them empty` : "";
    return `Complete: ${size}${some}${grouped}.`;
  }

  /** What is likely to be wrong with a query whose answer, or each message of it, has nothing in it; null: nothing. */
  emptyCause() {
    const unbound = this.asked.form === "CONSTRUCT" ? unboundOf(tokens(this.asked.query)) : [];
    if (unbound.length) return `No solution binds ${unbound.join(" and ")} of the template, so its triples are left out.`;
    if (this.isOther || this.most === 0) return null;
    if (this.count === 0) return "The data have no solutions of the query.";
    if (this.what !== "message" || this.empty < this.count) return null;
    return "Each triple of the template has an unbound variable, or a term that may not stand there.";
  }

  /** Shows the cause, and which terms of the query occur nowhere in the data. */
  async explain(cause, asked) {
    $("cause").textContent = cause;
    $("cause").hidden = false;
    if (this.count && !(this.what === "message" && this.empty === this.count)) return;
    const { signal } = this.views.stops;
    const found = tokens(asked.query);
    const hasGraphs = found.some(({ kind, text }) => kind === "keyword" && /^(?:from|graph|service)$/i.test(text));
    const place = hasGraphs ? null : await emptyPlace(asked.url, asked.further, signal);
    if (signal.aborted) return;
    if (place !== null) {
      $("cause").textContent = `${cause} ${place}`;
      return;
    }
    const written = new Map(); // by IRI
    for (const text of soughtIn(found).slice(0, MOST_SOUGHT)) {
      const iri = text.startsWith("<") ? text.slice(1, -1) : asked.prefixes.expand(text);
      if (/^[a-z][a-z0-9+.-]*:[^\s<>"{}|^`\\]*$/i.test(iri ?? "")) written.set(iri, text.startsWith("<") ? text : `${text} (${iri})`);
    }
    const unknown = written.size === 0 ? null : await unknownAt(asked.url, written.keys(), asked.further, signal);
    if (unknown === null || signal.aborted) return;
    const names = unknown.map((iri) => written.get(iri));
    if (!names.length && this.count) return;
    const cases = names.length
      ? `${names.join(" and ")} ${names.length > 1 ? "occur" : "occurs"} nowhere in the data.`
      : "Each IRI of its pattern occurs there, but not as the pattern and its filters have them together.";
    $("cause").textContent = `${cause} ${cases}`;
  }

  reset() {
    this.cards.clear();
    this.cards.prefixes = this.asked.prefixes;
    this.cards.show($("filter").value);
    this.views.reset(this.asked);
    this.count = this.bytes = 0;
    this.most = null; // the maximal number of messages, if known
    this.size = null; // the number of bytes, if known
    this.what = "message";
    this.empty = 0; // messages without a quad
    this.isOther = false; // whether the answer has no items
    this.outcome = null;
    this.answered = false;
    this.note = "";
    this.begun = performance.now();
    this.first = this.ended = null;
    for (const id of ["banner", "cause", "figures", "list-bar", "landing"]) $(id).hidden = true;
    $("results").setAttribute("aria-busy", "true");
    $("stop").disabled = false;
    this.say("The query runs.");
    clearInterval(this.timer);
    this.timer = setInterval(() => this.showFigures(), 250);
    $("progress").hidden = false;
    this.showFigures();
  }

  /** Records the expected size, if the server or the query has it. */
  expect(response) {
    const length = Number(response.headers.get("Content-Length"));
    if (length && !response.headers.get("Content-Encoding")) this.size = length;
    const limit = LIMIT.exec(this.asked.query.replace(/#[^\n<>]*$/gm, ""));
    if (limit !== null) this.most = Number(limit[1]);
  }

  get figures() {
    return { count: this.count, what: this.what };
  }

  rest() {
    this.running = null;
    this.settled(this.asked, { outcome: this.outcome, ...this.figures });
    clearInterval(this.timer);
    this.ended = performance.now();
    for (const id of ["progress", "bar"]) $(id).hidden = true;
    $("results").removeAttribute("aria-busy");
    $("stop").disabled = true;
    this.views.ended();
    this.showFigures();
  }

  /** Reads a log, and describes its size in words. */
  async takeLog(response, running) {
    this.views.offerMessages();
    $("figures").hidden = false;
    const reader = await readLog(this.counted(response.body, running), (message) => {
      if (this.running !== running) return;
      this.came(message.number);
      if (!message.lines.length) this.empty += 1;
      this.views.add(message);
    }, syntaxOf(response.headers.get("Content-Type")));
    return countOf(reader.count, "message");
  }

  /** Reads another answer, and describes its size in words. */
  async takeOther(response, type, running) {
    const pieces = this.counted(response.body, running);
    if (type.startsWith(SOLUTIONS_TYPE)) return this.takeSolutions(pieces, running);
    if (!isGraph(type)) {
      this.isOther = true;
      const text = await textElement(pieces, type);
      if (this.running === running) this.views.showOther(text);
      return countOf(this.bytes, "byte");
    }
    this.what = "triple";
    $("figures").hidden = false;
    const graph = await readGraph(pieces, (count) => {
      if (this.running === running && count) this.came(count);
    });
    if (this.running === running) this.views.showOther(graphElementOf(graph, this.asked.prefixes));
    return countOf(graph.statements, "triple");
  }

  async takeSolutions(pieces, running) {
    const table = solutionTable(this.asked.prefixes);
    const reader = new SolutionsReader((solution, characters) => {
      if (!table.columns.length) table.setColumns(reader.variables ?? Object.keys(solution));
      table.add(solution, characters);
    });
    for await (const bytes of pieces) {
      reader.feed(bytes);
      if (this.running !== running) return "";
      if (table.count === 0) continue;
      if (this.count === 0) {
        this.what = "solution";
        $("figures").hidden = false;
        this.views.showOther(table.element);
      }
      this.came(table.count);
      table.show();
    }
    const document = reader.close();
    if ("boolean" in document) {
      this.isOther = true;
      this.views.showOther(truthElement(document.boolean));
      return document.boolean ? "yes" : "no";
    }
    const variables = document.head?.vars ?? table.columns;
    if (String(table.columns) !== String(variables)) table.setColumns(variables);
    this.views.showOther(table.element);
    table.show();
    return countOf(table.count, "solution");
  }

  /** Records the number of received items. */
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
    const had = this.count && this.what !== "triple"; // a graph is shown at its end
    const got = had ? ` Only its beginning is below: ${countOf(this.count, this.what)}.` : "";
    this.outcome = aborted ? "stopped" : error instanceof Refusal ? "refused" : "failed";
    if (aborted) {
      this.banner("warn", `Stopped: the answer is not complete.${got}`);
    } else if (error instanceof Refusal) {
      if (error.line !== null) this.refused(error.line, error.column, error.text); // which has the reason at its place
      const reason = error.line === null ? error.text : `see line ${error.line}, column ${error.column} of the query.`;
      this.banner("bad", `Refused (${error.status}): ${reason}`);
    } else if (error instanceof CutError) {
      this.banner("bad", `The answer was cut: ${error.message}. It is not complete.${got}`);
    } else if (error instanceof LogError) {
      this.banner("bad", `The answer cannot be read: ${error.message}.${got}`);
    } else {
      const whose = this.answered ? "The page failed to show the answer" : "The query failed";
      this.banner("bad", `${whose}: ${error.message}.${got}`);
    }
  }

  // --- state -----

  banner(kind, text) {
    $("banner").className = `banner ${kind}`;
    $("banner").textContent = text;
    $("banner").setAttribute("role", kind === "good" ? "note" : "alert");
    $("banner").hidden = false;
  }

  say(text) {
    $("announcement").textContent = text;
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
    $("progress").textContent = this.progress(Math.floor(seconds));
    this.showBar();
    // how many there are, and how long it takes, is in the sentence above
    const isLong = this.first !== null && seconds >= 1;
    $("figure-rate").textContent = isLong ? `${Math.round(this.count / seconds).toLocaleString()} a second` : "";
    $("figure-first").textContent = this.first === null ? "" : `the first after ${durationOf(this.first - this.begun)}`;
    $("figure-total").textContent = this.ended === null ? "" : `all after ${durationOf(this.ended - this.begun)}`;
    $("figure-bytes").textContent = countOf(this.bytes, "byte");
    this.showPlace();
  }

  /** A sentence about what the answer is waiting for. */
  progress(seconds) {
    const where = `/${this.asked.endpoint}`;
    const grouped = groupedBy(this.asked.parameters);
    if (!this.answered) return `The query runs at ${where}: no answer yet, after ${seconds} s.`;
    if (this.first === null) return `${where} answers: waiting for the first ${this.what}, ${seconds} s so far.`;
    const most = this.most === null ? "" : ` of at most ${this.most.toLocaleString()}`;
    return `Receiving${grouped}: ${countOf(this.count, this.what)}${most}, ${seconds} s so far.`;
  }

  showBar() {
    const isKnown = this.ended === null && this.answered && (this.most !== null || this.size !== null);
    $("bar").hidden = !isKnown;
    if (!isKnown) return;
    $("bar").max = this.size ?? this.most;
    $("bar").value = this.size === null ? this.count : this.bytes;
  }

  /** The position in the list, and the result of a filter. */
  showPlace() {
    const { cards } = this;
    const { first, count } = cards.store;
    $("list-bar").hidden = count === 0 || !this.views.isList;
    $("kept").textContent = this.note || cards.described();
    for (const id of ["place", "jump"]) {
      $(id).min = first + 1;
      $(id).max = count;
    }
    $("of").textContent = `of ${count.toLocaleString()}`;
    $("place").hidden = count < 30 || cards.filter !== "";
    const seen = cards.seen();
    if (seen !== null && document.activeElement !== $("jump")) $("jump").value = seen;
    if (seen !== null && document.activeElement !== $("place")) $("place").value = seen;
    if (!this.filtered || !cards.isDone) return;
    this.filtered = false;
    this.say($("kept").textContent);
  }

  async jump(number) {
    if (!Number.isInteger(number) || number < 1) return;
    const isKept = await this.cards.jump(number);
    if (isKept) $("filter").value = "";
    this.note = isKept ? "" : `message ${number} is not kept`;
    this.showPlace();
    if (!isKept) this.say(this.note);
  }
}

/** The grouping of the messages of an answer, in words. */
function groupedBy(parameters) {
  const names = parameters.filter(([name]) => name === "group-by").map(([, value]) => `?${value}`);
  return names.length ? `, grouped by ${names.join(" and ")}` : "";
}
