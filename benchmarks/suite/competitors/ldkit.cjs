// LDkit: a schema of properties, one lens, `find`; each entity that comes back is written as triples again.
// Arguments: the pieces and the endpoint.
//
// Knows the schema. Asks a flat CONSTRUCT of its own and decodes it by resource, so several solutions of a resource
// are one object. A schema is a tree of properties and types, and a search has filters of one property each: other
// queries cannot be said. Datatypes are kept by data handlers that are registered here, languages by `@multilang` on
// the properties that have them.
const fs = require('fs');
const { createLens, registerDataHandler } = require('ldkit');

const query = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const XSD = 'http://www.w3.org/2001/XMLSchema#';
const RDF = 'http://www.w3.org/1999/02/22-rdf-syntax-ns#';
const quoted = (value) =>
  `"${value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n').replace(/\r/g, '\\r')}"`;
const kinds = 'boolean integer decimal double float nonNegativeInteger positiveInteger int long date dateTime gYear';
for (const kind of [...kinds.split(' '), 'gYearMonth', 'gMonthDay', 'anyURI']) {
  registerDataHandler(XSD + kind, (value) => `${quoted(value)}^^<${XSD}${kind}>`, String);
}
registerDataHandler(`${XSD}string`, quoted, String);
registerDataHandler(`${RDF}langString`, quoted, String);

const node = (id) => (/^(b|n|bc|e|t)?[0-9a-zA-Z_-]*$/.test(id) ? `_:${id}` : `<${id}>`);

function* lines(entity, schema) {
  for (const type of schema['@type'] || []) yield `${node(entity.$id)} <${RDF}type> <${type}> .\n`;
  for (const [key, property] of Object.entries(schema)) {
    if (key === '@type' || !entity[key]) continue;
    for (const [object, below] of values(entity[key], property)) {
      yield `${node(entity.$id)} <${property['@id']}> ${object} .\n`;
      if (below) yield* lines(below, property['@schema']);
    }
  }
}

function* values(found, property) {
  if (property['@multilang']) {
    for (const [language, texts] of Object.entries(found)) {
      for (const text of texts) yield [language ? `${text}@${language}` : text];
    }
    return;
  }
  for (const value of found) {
    if (property['@schema']) yield [node(value.$id), value];
    else yield [value[0] === '"' ? value : `<${value}>`];
  }
}

// Virtuoso 7 does not answer to a body of application/sparql-query, which LDkit sends.
function asForm(url, { method, headers, body }) {
  return fetch(url, { method, headers: { accept: headers.accept }, body: new URLSearchParams({ query: body }) });
}

// Virtuoso 7.2.5 never answers the `application/sparql-query` that LDkit posts; every endpoint takes a form
const form = (url, { headers, body }) =>
  fetch(url, { method: 'POST', headers: { accept: headers.accept }, body: new URLSearchParams({ query: body }) });

async function main() {
  if (!query.ldkit) throw `cannot: ${query.ldkit_reason}`;
  const lens = createLens(query.ldkit, { sources: [process.argv[3]], fetch: asForm });
  let first = true;
  for (const entity of await lens.find({ take: 1e9, where: query.ldkit_where })) {
    const group = [...lines(entity, query.ldkit)].join('');
    if (first) fs.writeSync(1, `${group}# group\n`);
    else process.stdout.write(`${group}# group\n`);
    first = false;
  }
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
