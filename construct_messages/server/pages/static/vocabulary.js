// The classes and predicates of endpoints, for completion: each is requested once, within limits. No access to the
// document.
//
// The requests are for declared terms, and for terms in the first solutions, so the whole data is never searched. An
// endpoint that fails, is slow or rejects the query has no completion, without an error.

import { ask } from "./server.js";
import { RDF } from "./terms.js";

const RDFS = "http://www.w3.org/2000/01/rdf-schema#";
const OWL = "http://www.w3.org/2002/07/owl#";
const MOST = 1000; // terms
const SAMPLE = 10_000; // solutions in which terms are looked for
const SECONDS = 5; // for an answer
const GRACE = 1000; // milliseconds for which a request continues after the last waiting caller has left
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

/** Those of some IRIs that no quad of an endpoint has in any place; null: it fails, is slow, or `signal` has aborted.
 *
 *  `parameters` are further ones of the request. */
export async function unknownAt(url, iris, parameters, signal) {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(SECONDS * 1000)]);
  const unknown = [];
  for (const iri of iris) {
    const places = `{ <${iri}> ?p ?o } UNION { ?s <${iri}> ?o } UNION { ?s ?p <${iri}> }`;
    const query = `ASK { ${places} UNION { GRAPH ?g { ${places} } } UNION { GRAPH <${iri}> { ?s ?p ?o } } }`;
    const answer = await ask(url, query, "application/sparql-results+json", limited, parameters)
      .then((response) => response.json())
      .catch(() => null);
    if (answer === null) return null;
    if (!answer.boolean) unknown.push(iri);
  }
  return unknown;
}

/** That an endpoint has nothing where a query looks for it, in a sentence; null: it has something, or does not say. */
export async function emptyPlace(url, parameters, signal) {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(SECONDS * 1000)]);
  const has = (pattern) =>
    ask(url, `ASK { ${pattern} }`, "application/sparql-results+json", limited, parameters)
      .then((response) => response.json())
      .then(({ boolean }) => boolean)
      .catch(() => null);
  if ((await has("?s ?p ?o")) !== false) return null;
  const inGraphs = await has("GRAPH ?g { ?s ?p ?o }");
  if (inGraphs === null) return null;
  return inGraphs ? "Its default graph is empty: GRAPH ?g { … } asks the named graphs." : "There are no data at this endpoint.";
}

export class Vocabulary {
  constructor() {
    this.kept = new Map(); // by endpoint, kind and namespace: {answer, waiting, stop}
  }

  /** The IRIs of a kind in a namespace at an endpoint; none if it fails. `signal`: the caller has left. */
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
    let isLeft = false; // by the callers; the endpoint has not failed
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
