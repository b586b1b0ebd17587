// The classes and predicates of endpoints, for completion: asked once each, within bounds. Touches no document.
//
// What an endpoint declares is asked for, and what occurs in the first solutions that it finds: whole data are never
// searched. An endpoint that fails, is slow or refuses has no completion, and nobody is told.

import { ask } from "./server.js";
import { RDF } from "./terms.js";

const RDFS = "http://www.w3.org/2000/01/rdf-schema#";
const OWL = "http://www.w3.org/2002/07/owl#";
const MOST = 1000; // terms
const SAMPLE = 10_000; // solutions in which terms are looked for
const SECONDS = 5; // for an answer
const GRACE = 1000; // milliseconds that a request goes on after nobody waits for it
const AGAIN = 60_000; // milliseconds until an endpoint that failed is asked again
const KINDS = {
  class: { types: [`${OWL}Class`, `${RDFS}Class`], sample: "?subject a ?term" },
  predicate: {
    types: [`${RDF}Property`, `${OWL}ObjectProperty`, `${OWL}DatatypeProperty`],
    sample: "?subject ?term ?object",
  },
};

/** The query for the classes or predicates of a namespace; an empty one: of all. */
export function vocabularyQuery(kind, namespace) {
  const { types, sample } = KINDS[kind];
  const parts = types.map((type) => `{ ?term a <${type}> }`);
  parts.push(`{ SELECT ?term WHERE { ${sample} } LIMIT ${SAMPLE} }`);
  const start = namespace === "" ? "" : ` && STRSTARTS(STR(?term), ${JSON.stringify(namespace)})`;
  return `SELECT DISTINCT ?term WHERE { ${parts.join(" UNION ")} FILTER(isIRI(?term)${start}) } LIMIT ${MOST}`;
}

export class Vocabulary {
  constructor() {
    this.kept = new Map(); // by endpoint, kind and namespace: {answer, waiting, stop}
  }

  /** The IRIs of a kind in a namespace, as an endpoint has them; none where it fails. `signal`: nobody waits any more. */
  terms(url, kind, namespace, signal) {
    const key = JSON.stringify([url, kind, namespace]);
    if (!this.kept.has(key)) this.kept.set(key, this.begin(url, kind, namespace, () => this.kept.delete(key)));
    const entry = this.kept.get(key);
    entry.waiting += 1;
    signal.addEventListener("abort", () => {
      entry.waiting -= 1;
      setTimeout(() => entry.waiting === 0 && entry.stop(), GRACE);
    });
    return entry.answer;
  }

  /** Begins a request; `forget` lets it be made again. */
  begin(url, kind, namespace, forget) {
    const controller = new AbortController();
    let isLeft = false; // by those who waited, which says nothing of the endpoint
    const timer = setTimeout(() => controller.abort(), SECONDS * 1000);
    const answer = namesOf(url, vocabularyQuery(kind, namespace), controller.signal)
      .catch(() => {
        if (isLeft) forget();
        else setTimeout(forget, AGAIN);
        return [];
      })
      .finally(() => clearTimeout(timer));
    const stop = () => {
      isLeft = true;
      controller.abort();
    };
    return { answer, waiting: 0, stop };
  }
}

async function namesOf(url, query, signal) {
  const response = await ask(url, query, "application/sparql-results+json", signal);
  const { results } = await response.json();
  return results.bindings.map(({ term }) => term.value).filter((iri) => !/[\s<>"{}|^`\\]/.test(iri));
}
