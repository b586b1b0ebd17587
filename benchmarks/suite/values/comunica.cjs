// Comunica and jsonld.js: a CONSTRUCT over the endpoint, and one frame over the graph of all results. Arguments: the
// task, the query's file and the endpoint. Prints a document a line.
const fs = require('fs');
const { QueryEngine } = require('@comunica/query-sparql-file');
const jsonld = require('jsonld');
const N3 = require('n3');

async function main() {
  const { frame } = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
  const query = fs.readFileSync(process.argv[3], 'utf8');
  const sources = [{ type: 'sparql', value: process.argv[4] }];
  const store = new N3.Store();
  for await (const quad of await new QueryEngine().queryQuads(query, { sources })) store.addQuad(quad);
  const text = new N3.Writer({ format: 'N-Quads' }).quadsToString(store.getQuads());
  const graph = await jsonld.fromRDF(text, { format: 'application/n-quads', useNativeTypes: true });
  const framed = await jsonld.frame(graph, frame, { omitGraph: false });
  for (const document of framed['@graph']) process.stdout.write(`${JSON.stringify(document)}\n`);
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
