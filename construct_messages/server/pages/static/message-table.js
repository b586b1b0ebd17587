// Messages as a table: a row for each top-level node of a message, a column for each property of these nodes, and for
// each path of properties to nested nodes.

import { DataTable } from "./data-table.js";
import { element } from "./elements.js";
import { statementsOf } from "./message-view.js";
import { nest } from "./nesting.js";
import { RDF, XSD } from "./terms.js";

const MESSAGES = 2000;
const COLUMNS = 30;
const NUMBER = Symbol("number");
const SUBJECT = Symbol("subject");

/** The table of the first messages of a store; it fills while it is read. */
export function messageTable(store, prefixes) {
  const table = new DataTable({
    label: "messages",
    what: "row",
    prefixes,
    cell: (row, column) => row.get(column) ?? [],
    head: (column) => headOf(column, prefixes),
    file: "messages.csv",
  });
  const note = element("p", { class: "note" });
  fill(table, store, note);
  return element("div", {}, note, table.element);
}

function headOf(column, prefixes) {
  if (column === NUMBER) return "message";
  if (column === SUBJECT) return "subject";
  const names = column.split(" ").map((each) => (each === `${RDF}type` ? "a" : (prefixes.shorten(each) ?? each)));
  return names.join(" / ");
}

async function fill(table, store, note) {
  const uses = new Map(); // by predicate
  let read = 0;
  let index = store.first;
  while (read < MESSAGES && index < store.count) {
    const [start, messages] = await store.some(index);
    const some = messages.slice(0, MESSAGES - read);
    for (const message of some) {
      for (const row of rowsOf(message)) {
        table.add(row, message.characters);
        for (const column of row.keys()) if (typeof column === "string") uses.set(column, (uses.get(column) ?? 0) + 1);
      }
    }
    read += some.length;
    index = start + some.length;
    await new Promise((done) => requestAnimationFrame(done));
  }
  const columns = [...uses].sort(([, a], [, b]) => b - a).map(([column]) => column);
  table.setColumns([NUMBER, SUBJECT, ...columns.slice(0, COLUMNS)]);
  const parts = [];
  if (read < store.count) parts.push(`The table has the first ${read.toLocaleString()} messages.`);
  if (columns.length > COLUMNS) parts.push(`Of ${columns.length} properties it has the ${COLUMNS} that are used most.`);
  note.textContent = parts.join(" ");
  note.hidden = !parts.length;
}

/** A row for each top-level node of a message: the terms of a cell by column. */
function rowsOf(message) {
  const number = { kind: "literal", value: String(message.number), language: null, datatype: `${XSD}integer` };
  return nest(statementsOf(message.lines).statements).flatMap(({ nodes }) =>
    nodes.map(({ term, properties }) => {
      const row = new Map([[NUMBER, [number]], [SUBJECT, [term]]]);
      for (const [predicate, objects] of properties) fillCells(row, predicate, objects);
      return row;
    }),
  );
}

/** Puts objects into the cell of their path, and their own properties into the cells of longer paths. */
function fillCells(row, path, objects) {
  for (const { term, node, items } of objects) {
    if (items !== null) fillCells(row, path, items);
    else if (node === null || term.kind === "iri") row.set(path, [...(row.get(path) ?? []), term]);
    for (const [predicate, others] of node?.properties ?? []) fillCells(row, `${path} ${predicate}`, others);
  }
}
