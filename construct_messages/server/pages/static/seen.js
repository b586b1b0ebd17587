// The classes and predicates of messages that the page has got, for completion.

import { statementsOf } from "./message-view.js";
import { RDF } from "./terms.js";

const READ = 60; // statements of a message that are looked at
const MOST = 1000; // terms that are kept

/** The classes and predicates of messages that the page has got; see `Vocabulary`. */
export class SeenTerms {
  constructor() {
    this.seen = { class: new Set(), predicate: new Set() };
  }

  learn({ lines }) {
    for (const { predicate, object } of statementsOf(lines.slice(0, READ)).statements) {
      this.put("predicate", predicate.value);
      if (predicate.value === `${RDF}type` && object.kind === "iri") this.put("class", object.value);
    }
  }

  put(kind, iri) {
    if (this.seen[kind].size < MOST) this.seen[kind].add(iri);
  }

  terms(url, kind, namespace) {
    return [...this.seen[kind]].filter((iri) => iri.startsWith(namespace));
  }
}
