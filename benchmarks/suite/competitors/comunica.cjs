// Comunica as a library: `queryBindings` over the file, and an N3 Store for each result, filled from the template by
// hand. Arguments: the pieces and the N-Triples file.
//
// Knows everything: a binding is a solution. The user writes the rules of a template himself, as `instantiate` here.
const fs = require('fs');
const { QueryEngine } = require('@comunica/query-sparql-file');
const N3 = require('n3');

const query = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const { quad, blankNode } = N3.DataFactory;
const writer = new N3.Writer({ format: 'N-Triples' });
const constant = (text) => new N3.Parser().parse(`<urn:s> <urn:p> ${text} .`)[0].object;
const template = query.template.map((triple) =>
  triple.map((text) => {
    if (text[0] === '?') return (bindings) => bindings.get(text.slice(1));
    if (text[0] === '_') return (_, number) => blankNode(`own_${text.slice(2)}_${number}`);
    const term = constant(text);
    return () => term;
  }),
);

function instantiate(bindings, number) {
  const store = new N3.Store();
  for (const parts of template) {
    const [s, p, o] = parts.map((part) => part(bindings, number));
    if (s && p && o && s.termType !== 'Literal' && p.termType === 'NamedNode') store.addQuad(quad(s, p, o));
  }
  return store;
}

async function main() {
  const sources = [{ type: 'file', value: process.argv[3] }];
  const found = await new QueryEngine().queryBindings(query.select, { sources });
  let number = 0;
  for await (const bindings of found) {
    const lines = writer.quadsToString(instantiate(bindings, number).getQuads());
    if (number++ === 0) fs.writeSync(1, `${lines}# group\n`);
    else if (!process.stdout.write(`${lines}# group\n`)) await new Promise((go) => process.stdout.once('drain', go));
  }
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
