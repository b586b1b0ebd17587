// A flat CONSTRUCT, and the extraction of each root's triples by a SHACL shape: npm's extract-cbd-shape, which is the
// member extraction algorithm of TREE. Arguments: the pieces and the endpoint.
//
// Knows which nodes of the result are roots, and by the shape the paths of the template from there, through IRIs too
// and in both directions. Cannot know which triples came together: a root with two solutions is one group, and what
// it shares with another is in both. Never dereferences: the shape requires nothing, and what is not there is refused.
const fs = require('fs');
const { Readable } = require('stream');
const N3 = require('n3');
const { RdfStore } = require('rdf-stores');
const { CBDShapeExtractor } = require('extract-cbd-shape');

const query = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const writer = new N3.Writer({ format: 'N-Triples' });
const term = (text) => (/^[?_]/.test(text) ? null : new N3.Parser().parse(`<urn:s> <urn:p> ${text} .`)[0].object);

function load(store, stream) {
  return new Promise((resolve, reject) => store.import(stream).on('end', resolve).on('error', reject));
}

async function main() {
  const answer = await fetch(process.argv[3], {
    method: 'POST',
    headers: { accept: 'application/n-triples, text/plain;q=0.5' },
    body: new URLSearchParams({ query: query.construct }),
  });
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  const store = RdfStore.createDefault();
  await load(store, Readable.fromWeb(answer.body).pipe(new N3.StreamParser({ format: 'N-Triples' })));
  const shapes = RdfStore.createDefault();
  for (const quad of new N3.Parser().parse(query.shape)) shapes.addQuad(quad);
  const nothing = { dereference: async () => ({ data: Readable.from([]) }) };
  const extractor = new CBDShapeExtractor(shapes, nothing);
  let first = true;
  await extractor.bulkExtract(store, roots(store), N3.DataFactory.namedNode('urn:shape:root'), [], ({ quads }) => {
    const lines = writer.quadsToString(quads);
    if (first) fs.writeSync(1, `${lines}# group\n`);
    else process.stdout.write(`${lines}# group\n`);
    first = false;
  });
}

// The subjects that have what the template says of its root.
function roots(store) {
  const needed = query.root_patterns;
  if (!/^[?_]/.test(needed[0][0])) return [term(needed[0][0])];
  const found = new Map();
  needed.forEach(([, predicate, object], index) => {
    for (const quad of store.getQuads(null, term(predicate), term(object), null)) {
      const key = `${quad.subject.termType} ${quad.subject.value}`;
      if (!found.has(key)) found.set(key, [quad.subject, new Set()]);
      found.get(key)[1].add(index);
    }
  });
  const enough = query.root_needs_all ? needed.length : 1;
  return [...found.values()].filter(([, has]) => has.size >= enough).map(([root]) => root);
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
