// LDkit: a schema, one lens, `find`, and the entities as documents with the keys of the frame. Arguments: the task and
// the endpoint. Dates stay texts, as in JSON; a single value is no array.
const fs = require('fs');
const { createLens, registerDataHandler } = require('ldkit');

registerDataHandler('http://www.w3.org/2001/XMLSchema#date', String, String);

// LDkit 2 posts `application/sparql-query`; a form is what every endpoint takes
const form = (url, { headers, body }) =>
  fetch(url, { method: 'POST', headers: { accept: headers.accept }, body: new URLSearchParams({ query: body }) });

function document(entity, schema, shorten) {
  const made = { '@id': entity.$id };
  if (schema['@type']) made['@type'] = shorten(schema['@type']);
  for (const [key, property] of Object.entries(schema)) {
    if (key[0] === '@' || !entity[key] || !entity[key].length) continue;
    const values = entity[key].map((value) =>
      property['@schema'] ? document(value, property['@schema'], shorten) : value,
    );
    made[key] = values.length === 1 ? values[0] : values;
  }
  return made;
}

async function main() {
  const { frame, ldkit, where } = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
  if (!ldkit) throw 'cannot: a schema of LDkit has no place for BIND';
  const shorten = (iri) => iri.replace(frame['@context'].dbo, 'dbo:');
  const lens = createLens(ldkit, { sources: [process.argv[3]], fetch: form });
  for (const entity of await lens.find({ take: 1e9, where })) {
    process.stdout.write(`${JSON.stringify(document(entity, ldkit, shorten))}\n`);
  }
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
