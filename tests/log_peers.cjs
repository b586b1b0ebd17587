// npm's n3 and jsonld as peers: `node log_peers.cjs MODE FORMAT`, with their modules in NODE_PATH.
// Messages are arrays of N-Quads, as JSON; a log is text. What is not read comes on standard input, the rest goes out.
'use strict';
const { readFileSync } = require('node:fs');
const N3 = require('n3');
const jsonld = require('jsonld');

const input = readFileSync(0, 'utf8');
const [, , mode, format] = process.argv;

const lines = (quads) => new N3.Writer({ format: 'N-Quads' }).quadsToString(quads);
const parse = (text) => new N3.Parser({ format: 'N-Quads', blankNodePrefix: '' }).parse(text);

const modes = {
  'n3-read': () =>
    new Promise((resolve, reject) => {
      const messages = [];
      let quads = [];
      const parser = new N3.Parser({ format, directives: ['message'], parseUnsupportedVersions: true });
      const end = () => {
        messages.push(lines(quads));
        quads = [];
      };
      parser.parse(input, {
        onQuad(error, quad) {
          if (error) reject(error);
          else if (quad) quads.push(quad);
          else {
            // what stands behind the last delimiter is left to the caller
            if (quads.length) end();
            resolve(messages);
          }
        },
        onDirective: end,
      });
    }),
  'n3-write': async () => {
    let log = '';
    const stream = { write: (chunk, _, done) => ((log += chunk), done && done()), end: (done) => done && done() };
    let version = '1.2-messages';
    for (const text of JSON.parse(input)) {
      const writer = new N3.Writer(stream, { format, version, end: false });
      writer.addQuads(parse(text));
      writer.end();
      log += 'MESSAGE\n';
      version = undefined;
    }
    return log;
  },
  'jsonld-read': async () => {
    const messages = [];
    let context;
    for (const line of input.split('\n').slice(0, -1)) {
      const document = JSON.parse(line);
      if (Object.keys(document).join() === '@context') context = document['@context'];
      else {
        const whole = context === undefined ? document : { '@context': context, '@graph': document };
        messages.push(await jsonld.toRDF(whole, { format: 'application/n-quads' }));
      }
    }
    return messages;
  },
  'jsonld-write': async () => {
    const documents = [];
    for (const text of JSON.parse(input)) {
      documents.push({ '@graph': await jsonld.fromRDF(text, { format: 'application/n-quads' }) });
    }
    return documents.map((document) => `${JSON.stringify(document)}\n`).join('');
  },
};

modes[mode]().then((result) => process.stdout.write(typeof result === 'string' ? result : JSON.stringify(result)));
