// A table that grows as its rows arrive: sorted and filtered by columns, and saved as CSV. Of many rows, the first are
// kept.
//
// SPARQL 1.1 Query Results CSV Format, section 3, for saved files: values without the syntax of their terms.

import { button, countOf, element } from "./elements.js";
import { termElement } from "./term-view.js";
import { XSD, shownText } from "./terms.js";

const SHOWN = 200; // rows, and more on demand
const KEPT_ROWS = 100_000;
const KEPT_CHARACTERS = 1 << 26; // of the kept rows; at least one row is kept, however long
const FRAME_MILLISECONDS = 8;
const MARK = "\ufeff";
const NUMBERS = /(?:integer|decimal|double|float|int|long|short|byte|nonNegativeInteger|positiveInteger)$/;

export class DataTable {
  /** `label` names the table, `what` a row, and `isCounted` is whether their number is said; `cell(row, column)` returns
   *  the terms of a cell, and `head(column)` the heading of a column. */
  constructor({ label, what, isCounted = true, prefixes, cell, head = (column) => column, file = "results.csv" }) {
    Object.assign(this, { what, isCounted, prefixes, cell, head, file });
    this.columns = [];
    this.rows = []; // the first that have come
    this.characters = 0;
    this.count = 0; // that have come
    this.sorting = null; // {column, descending}
    this.order = null; // rows as they are sorted and filtered; null: as they came
    this.shown = 0;
    this.wanted = SHOWN;
    this.turn = 0;
    this.note = element("span", { class: "note" });
    this.heads = element("tr", {});
    this.body = element("tbody", {});
    this.filter = element("input", { type: "search", autocomplete: "off" });
    this.filter.addEventListener("input", () => this.arrange());
    this.rest = button("", () => {
      this.wanted += SHOWN;
      this.show();
    });
    const bar = element(
      "div",
      { class: "bar" },
      element("label", {}, "Filter rows ", this.filter),
      button("Save as CSV", () => this.save(), { class: "quiet" }),
      button("CSV for Excel", () => this.save(MARK), { class: "quiet", title: "begins with a byte order mark" }),
      this.note,
    );
    const table = element("table", { "aria-label": label }, element("thead", {}, this.heads), this.body);
    const region = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${label}` }, table);
    this.element = element("div", { class: "data-table" }, bar, region, this.rest);
  }

  /** Takes a row of so many characters; it is counted, and kept while there is room. */
  add(row, characters) {
    this.count += 1;
    const fits = this.rows.length < KEPT_ROWS && this.characters + characters <= KEPT_CHARACTERS;
    // those that are kept are the first ones, without a gap
    if (this.rows.length === this.count - 1 && (fits || this.count === 1)) {
      this.rows.push(row);
      this.characters += characters;
    }
  }

  /** Names the columns, and renders existing rows again. */
  setColumns(columns) {
    this.columns = columns;
    this.heads.replaceChildren(...columns.map((column) => this.headElement(column)));
    this.again();
  }

  headElement(column) {
    const isSorted = this.sorting?.column === column;
    const order = this.sorting?.descending ? "descending" : "ascending";
    const sort = button(this.head(column), () => this.sort(column), { class: "sort" });
    return element("th", { scope: "col", "aria-sort": isSorted ? order : null }, sort);
  }

  again() {
    this.body.replaceChildren();
    this.shown = 0;
    this.show();
  }

  /** Renders the visible rows. */
  show() {
    const rows = this.order ?? this.rows;
    const made = document.createDocumentFragment();
    for (const row of rows.slice(this.shown, this.wanted)) {
      const cells = this.columns.map((column) => element("td", {}, ...this.cellParts(this.cell(row, column))));
      made.append(element("tr", {}, ...cells));
    }
    this.body.append(made);
    this.shown = Math.min(rows.length, this.wanted);
    const left = rows.length - this.shown;
    this.rest.hidden = left === 0;
    this.rest.textContent = `show more: ${countOf(left, this.what)} ${left === 1 ? "is" : "are"} left`;
    this.note.textContent = this.described();
  }

  cellParts(terms) {
    return terms.flatMap((term, index) => [...(index ? [element("br")] : []), termElement(term, this.prefixes)]);
  }

  described() {
    const kept = this.rows.length.toLocaleString();
    const bound = this.rows.length < this.count ? `; the first ${kept} are kept here, and Download saves all` : "";
    const found = this.order !== null && this.filter.value !== "" ? `${this.order.length.toLocaleString()} of ` : "";
    return this.isCounted || bound || found ? `${found}${countOf(this.count, this.what)}${bound}` : "";
  }

  // --- sorting and filtering ---

  sort(column) {
    const isSame = this.sorting?.column === column;
    this.sorting = isSame && this.sorting.descending ? null : { column, descending: isSame };
    const place = this.columns.indexOf(column);
    this.heads.replaceChildren(...this.columns.map((each) => this.headElement(each)));
    this.heads.children[place].querySelector("button").focus();
    this.arrange();
  }

  /** Filters and sorts the rows, a part in each frame. */
  async arrange() {
    const turn = (this.turn += 1);
    const text = this.filter.value.toLowerCase();
    const found = [];
    let due = performance.now() + FRAME_MILLISECONDS;
    for (const row of this.rows) {
      const key = this.sorting === null ? null : sortKey(this.cell(row, this.sorting.column)[0], this.prefixes);
      if (text === "" || this.textOf(row).includes(text)) found.push({ row, key });
      if (performance.now() < due) continue;
      await new Promise((done) => requestAnimationFrame(done));
      if (turn !== this.turn) return;
      due = performance.now() + FRAME_MILLISECONDS;
    }
    if (this.sorting !== null) {
      const sign = this.sorting.descending ? -1 : 1;
      found.sort((a, b) => compare(a.key, b.key, sign));
    }
    this.order = text === "" && this.sorting === null ? null : found.map(({ row }) => row);
    this.wanted = SHOWN;
    this.again();
  }

  textOf(row) {
    const terms = this.columns.flatMap((column) => this.cell(row, column));
    return terms.map((term) => shownText(term, this.prefixes)).join(" ").toLowerCase();
  }

  // --- saving ---

  /** Saves the rows as CSV; a mark may begin the file, by which Excel knows that it is UTF-8. */
  save(mark = "") {
    const lines = [this.columns.map((column) => quoted(String(this.head(column)).replace(/^\?/, ""))).join(",")];
    for (const row of this.order ?? this.rows) {
      lines.push(this.columns.map((column) => quoted(this.cell(row, column).map(plainText).join(" | "))).join(","));
    }
    const href = URL.createObjectURL(new Blob([mark, lines.join("\r\n"), "\r\n"], { type: "text/csv" }));
    element("a", { href, download: this.file }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  }
}

function plainText(term) {
  return term.kind === "blank" ? `_:${term.value}` : term.kind === "triple" ? shownText(term, { shorten: () => null }) : term.value;
}

function quoted(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The sort key of a term: a number, or a text; null without a term, which is last. */
function sortKey(term, prefixes) {
  if (term === undefined) return null;
  if (term.kind !== "literal") return shownText(term, prefixes).toLowerCase();
  const isNumber = term.datatype.startsWith(XSD) && NUMBERS.test(term.datatype) && Number.isFinite(Number(term.value));
  return isNumber ? Number(term.value) : term.value.slice(0, 200).toLowerCase();
}

function compare(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a !== typeof b) return typeof a === "number" ? -sign : sign;
  return a < b ? -sign : a > b ? sign : 0;
}
