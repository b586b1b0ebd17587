// Saved queries and the history of runs: in the browser's storage, in a dialog, and in a file.

import { button, countOf, element } from "./elements.js";
import { described, isSame, requestIn, titleOf } from "./request.js";
import { newId } from "./storage.js";

const RUNS = 300; // that are kept
const RUN_CHARACTERS = 1_000_000; // of their texts
const NAME = 200; // characters
const FILE_BYTES = 10_000_000;

const $ = (id) => document.getElementById(id);

export class Library {
  /** `current` returns the request of the form, `open(request)` puts one into the form, `opened` returns those that are
   *  open, for files. */
  constructor(storage, { current, open, opened }) {
    this.storage = storage;
    this.current = current;
    this.open = open;
    this.opened = opened;
    this.removed = []; // what can be brought back: [kind, value]
    storage.watch(() => this.show());
    $("to-library").addEventListener("click", () => this.showDialog());
    $("library-close").addEventListener("click", () => $("library").close());
    $("library-filter").addEventListener("input", () => this.show());
    $("save-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.save($("save-name").value.trim().slice(0, NAME));
    });
    $("clear-history").addEventListener("click", () => this.remove(this.all("run").map((run) => ["run", run]), "The history"));
    $("undo-remove").addEventListener("click", () => this.undo());
    $("export-queries").addEventListener("click", () => this.export());
    $("import-queries").addEventListener("click", () => $("import-file").click());
    $("import-file").addEventListener("change", () => this.import());
  }

  /** The things of a kind that have a request, the oldest first. */
  all(kind) {
    return this.storage.all(kind).flatMap((value) => {
      const request = requestIn(value);
      return request === null ? [] : [{ ...value, ...request }];
    });
  }

  // --- runs ---

  /** Notes that a request is run; returns the identifier of the run. */
  began(request) {
    this.forget(request);
    return this.note({ ...request, outcome: "not ended" });
  }

  /** Notes how a run has ended. */
  ended(id, figures) {
    const run = this.storage.get("run", id);
    if (run !== null) this.storage.set("run", id, { ...run, ...figures });
    this.show();
  }

  /** Keeps a request that was typed and is neither saved nor run, as it leaves the form. */
  keep(request) {
    if (request.query.trim() === "") return;
    const known = [...this.all("saved"), ...this.all("run")];
    if (!known.some((each) => isSame(each, request))) this.note({ ...request, outcome: "not run" });
  }

  note(run) {
    const id = newId();
    this.storage.set("run", id, { ...run, at: Date.now() });
    this.bound();
    this.show();
    return id;
  }

  /** Forgets the last run where it was of the same request. */
  forget(request) {
    const last = this.all("run").at(-1);
    if (last !== undefined && isSame(last, request)) this.storage.remove("run", last.id);
  }

  bound() {
    let characters = 0;
    for (const [index, run] of this.all("run").reverse().entries()) {
      characters += run.query.length;
      if (index > 0 && (index >= RUNS || characters > RUN_CHARACTERS)) this.storage.remove("run", run.id);
    }
  }

  // --- saved queries ---

  save(name) {
    const request = this.current();
    if (name === "") return;
    const before = this.all("saved").find((each) => each.name === name);
    if (before !== undefined && !isSame(before, request)) this.note({ ...requestIn(before), outcome: "replaced" });
    const isKept = this.storage.set("saved", before?.id ?? newId(), { name, at: Date.now(), ...request });
    $("save-name").value = "";
    this.show();
    this.say(isKept ? `“${name}” is saved.` : `“${name}” is saved until this page is closed: export it to keep it.`);
  }

  remove(removed, what) {
    for (const [kind, { id }] of removed) this.storage.remove(kind, id);
    this.removed = removed;
    this.show();
    this.say(`${what} is deleted.`);
    $("undo-remove").hidden = removed.length === 0;
    if (removed.length) $("undo-remove").focus();
  }

  undo() {
    for (const [kind, value] of this.removed) this.storage.set(kind, value.id, value);
    this.removed = [];
    this.show();
    this.say("It is back.");
    $("library-filter").focus();
  }

  // --- files ---

  export() {
    const [saved, history] = ["saved", "run"].map((kind) => this.all(kind));
    const text = JSON.stringify({ type: "construct-messages queries", saved, history, open: this.opened() }, null, 2);
    const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    element("a", { href, download: "queries.json" }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
    this.say(`${saved.length.toLocaleString()} saved queries and ${countOf(history.length, "run")} are in queries.json.`);
  }

  async import() {
    const [file] = $("import-file").files;
    if (file === undefined) return;
    let read = null;
    try {
      if (file.size <= FILE_BYTES) read = JSON.parse(await file.text());
    } catch {
      // said below
    }
    $("import-file").value = "";
    const [saved, history, open] = ["saved", "history", "open"].map((name) => (Array.isArray(read?.[name]) ? read[name] : []));
    const had = this.all("saved").length;
    let count = 0;
    for (const value of saved) count += this.take("saved", value, nameOf(value));
    for (const value of history) count += this.take("run", value, { outcome: String(value?.outcome ?? "").slice(0, 50) });
    for (const value of open) count += this.take("run", value, { outcome: "not run" });
    this.bound();
    this.show();
    const isFile = read?.type === "construct-messages queries";
    const added = this.all("saved").length - had;
    if (!isFile && count === 0) this.say(`${file.name} is no file of queries that this page has exported.`);
    else this.say(`${count.toLocaleString()} added, ${added.toLocaleString()} of them saved queries; those that were here are not added again.`);
  }

  /** Adds a thing of a file; returns how many were added. */
  take(kind, value, further) {
    const request = requestIn(value);
    if (request === null || further === null) return 0;
    if (this.all(kind).some((each) => isSame(each, request) && each.name === further.name)) return 0;
    const at = Number.isFinite(value.at) ? value.at : Date.now();
    const figures = Number.isFinite(value.count) ? { count: value.count, what: String(value.what ?? "").slice(0, 50) } : {};
    this.storage.set(kind, newId(), { ...request, ...figures, ...further, at });
    return 1;
  }

  // --- the dialog ---

  showDialog() {
    $("undo-remove").hidden = true;
    this.say(this.storage.isKept ? "" : "This browser keeps nothing for this page: what is listed is lost when the page is closed. Export saves it.");
    $("library").showModal();
    this.show();
    $("save-name").placeholder = titleOf(this.current()).slice(0, 60);
  }

  show() {
    if (!$("library").open) return;
    const text = $("library-filter").value.toLowerCase();
    const matches = ({ name = "", query }) => text === "" || `${name}\n${query}`.toLowerCase().includes(text);
    const saved = this.all("saved").filter(matches);
    saved.sort((one, other) => String(one.name).localeCompare(String(other.name)));
    const runs = this.all("run").filter(matches).sort((one, other) => other.at - one.at);
    $("saved-list").replaceChildren(...listed(saved, "No query is saved.", (each) => this.row("saved", each)));
    $("run-list").replaceChildren(...listed(runs, "Nothing was run.", (each) => this.row("run", each)));
  }

  row(kind, value) {
    const title = kind === "saved" ? String(value.name) : titleOf(value);
    const open = button(title, () => this.choose(value), { class: "row-open", title: value.query.slice(0, 1000) });
    const remove = () => this.remove([[kind, value]], `“${title}”`);
    const options = described(value.parameters);
    const count = Number.isFinite(value.count) ? countOf(value.count, String(value.what)) : null;
    const outcome = kind === "run" && value.outcome !== "complete" ? String(value.outcome) : null;
    const facts = [count, outcome, `/${value.endpoint}`, options].filter(Boolean).join(" · ");
    return element(
      "li",
      {},
      open,
      element("span", { class: "note" }, timeElement(value.at), ` · ${facts}`),
      button("Delete", remove, { class: "quiet", "aria-label": `Delete ${title}` }),
    );
  }

  choose(value) {
    $("library").close();
    this.open(requestIn(value));
  }

  say(text) {
    $("library-note").textContent = text;
    $("undo-remove").hidden = true;
  }
}

function nameOf(value) {
  const name = typeof value?.name === "string" ? value.name.trim().slice(0, NAME) : "";
  return name === "" ? null : { name };
}

function listed(values, empty, rowOf) {
  return values.length ? values.map(rowOf) : [element("li", { class: "note" }, empty)];
}

function timeElement(at) {
  const time = new Date(Number.isFinite(at) ? at : 0);
  if (Number.isNaN(time.getTime())) return "";
  return element("time", { datetime: time.toISOString() }, time.toLocaleString([], { dateStyle: "medium", timeStyle: "short" }));
}
