// The options of messages in the form, by the names of the command line, and parameters of a link that have no field.

import { OPTIONS, described, inOrder } from "./request.js";

const $ = (id) => document.getElementById(id);
const VARIABLE = /^[\p{L}\p{N}_]+$/u;

export class OptionFields {
  /** `changed` is called after each change by the user. */
  constructor(changed) {
    this.further = []; // what a link names that has no field
    this.offered = null; // the parameters of the example that the query was; null: it was none, or others were set
    this.changed = () => {
      this.offered = null;
      this.describe();
      changed();
    };
    for (const name of OPTIONS) $(name).addEventListener("input", this.changed);
    $("leave-out").addEventListener("click", () => {
      this.further = [];
      this.changed();
      $("query").focus();
    });
  }

  get parameters() {
    return inOrder([...this.fields, ...this.further]);
  }

  get fields() {
    const names = $("group-by").value.split(/[\s,]+/).filter(Boolean);
    return inOrder([
      ...names.map((name) => ["group-by", name]),
      ...["distinct", "lenient"].filter((name) => $(name).checked).map((name) => [name, "true"]),
      ...["max-messages", "page-size"].filter((name) => $(name).value !== "").map((name) => [name, $(name).value]),
    ]);
  }

  set parameters(parameters) {
    const taken = new Map();
    this.further = [];
    for (const [name, value] of parameters) {
      if (name === "group-by" && VARIABLE.test(value)) taken.set(name, [...(taken.get(name) ?? []), `?${value}`]);
      else if (!taken.has(name) && isOf(name, value)) taken.set(name, value);
      else this.further.push([name, value]);
    }
    $("group-by").value = (taken.get("group-by") ?? []).join(" ");
    for (const name of ["distinct", "lenient"]) $(name).checked = taken.has(name);
    for (const name of ["max-messages", "page-size"]) $(name).value = taken.get(name) ?? "";
    if (taken.size) $("options").open = true;
    this.describe();
  }

  /** Leaves the grouping of an example out: the query is another one. */
  forget() {
    if (this.offered !== null) this.parameters = [];
    this.offered = null;
  }

  /** Follows the query: the grouping of an example holds as long as the query has its variables. */
  follow(hasVariable) {
    if (this.offered === null) return;
    const fits = this.offered.every(([, name]) => hasVariable(name));
    const wanted = fits ? this.offered : [];
    if (this.parameters.length !== wanted.length) this.parameters = wanted;
  }

  /** Offers the options where the form of the query has them; null: which it is, the server will say. */
  offer(kind) {
    $("options").hidden = kind !== null && kind !== "CONSTRUCT";
  }

  describe() {
    $("options-set").textContent = described(this.fields);
    $("further").hidden = this.further.length === 0;
    $("further-text").textContent = described(this.further);
  }
}

/** Whether a field has a value, as those of links may be anything. */
function isOf(name, value) {
  if (name === "distinct" || name === "lenient") return value === "true";
  return (name === "max-messages" || name === "page-size") && /^\d{1,15}$/.test(value);
}
