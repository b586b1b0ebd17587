// Queries to begin with, which say something over any data.

export const EXAMPLES = [
  {
    name: "one message per resource",
    query: `# Each solution becomes a message of its own.
CONSTRUCT { ?resource a ?class ; ?property ?value }
WHERE { ?resource a ?class ; ?property ?value }
LIMIT 100
`,
  },
  {
    name: "resources with their labels",
    query: `PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
CONSTRUCT { ?resource a ?class ; rdfs:label ?label }
WHERE { ?resource a ?class ; rdfs:label ?label }
LIMIT 100
`,
  },
  {
    name: "messages with blank nodes",
    query: `CONSTRUCT { ?subject <urn:example:says> [ <urn:example:property> ?property ; <urn:example:value> ?value ] }
WHERE { ?subject ?property ?value }
LIMIT 100
`,
  },
  {
    name: "classes and how often they are used (SELECT)",
    query: `SELECT ?class (COUNT(*) AS ?resources)
WHERE { ?resource a ?class }
GROUP BY ?class
ORDER BY DESC(?resources)
LIMIT 100
`,
  },
  {
    name: "whether there is anything (ASK)",
    query: `ASK { ?subject ?property ?value }
`,
  },
];
