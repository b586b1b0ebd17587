// Queries to begin with, over any data. Those of an endpoint's settings come first.

import { inOrder } from "./request.js";

const ANY = [
  {
    name: "Ten things, each with all its properties",
    sentence: "Solutions with the same ?thing make one message: the whole of a thing stays together.",
    group_by: ["thing"],
    query: `CONSTRUCT { ?thing ?property ?value }
WHERE {
  { SELECT DISTINCT ?thing WHERE { ?thing a ?class } LIMIT 10 }
  ?thing ?property ?value
}
`,
  },
  {
    name: "Things with a label",
    sentence: "One message for each solution: a thing, its class and its label.",
    query: `PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
CONSTRUCT { ?thing a ?class ; rdfs:label ?label }
WHERE { ?thing a ?class ; rdfs:label ?label }
LIMIT 100
`,
  },
  {
    name: "Links between things",
    sentence: "A small star for each: what a thing links to, and what that is.",
    query: `CONSTRUCT { ?thing a ?class ; ?link ?other . ?other a ?kind }
WHERE { ?thing a ?class ; ?link ?other . ?other a ?kind }
LIMIT 100
`,
  },
  {
    name: "Blank nodes of the template",
    sentence: "Each message has blank nodes of its own: no two of them ever meet.",
    query: `PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
CONSTRUCT { [] a rdf:Statement ; rdf:subject ?thing ; rdf:predicate ?property ; rdf:object ?value }
WHERE { ?thing ?property ?value }
LIMIT 100
`,
  },
  {
    name: "Classes and how often they are used (SELECT)",
    sentence: "Queries of the other forms work as at any endpoint: solutions are a table.",
    query: `SELECT ?class (COUNT(*) AS ?things)
WHERE { ?thing a ?class }
GROUP BY ?class
ORDER BY DESC(?things)
LIMIT 100
`,
  },
  {
    name: "Whether there is anything (ASK)",
    sentence: "Yes or no.",
    query: `ASK { ?subject ?property ?value }
`,
  },
];

/** The examples of an endpoint: [{name, sentence, query, group_by}]. */
export function examplesOf(endpoint) {
  return [...endpoint.examples, ...ANY];
}

/** The parameters of the request for an example. */
export function parametersOf({ group_by: groupBy = [] }) {
  return inOrder(groupBy.map((name) => ["group-by", name]));
}
