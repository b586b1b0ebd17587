// npm's n3, jsonld and rdfjs-jelly as peers: `node log_peers.cjs`, with their modules in NODE_PATH.
// A line of JSON is a request: mode, format, and a log (text, or base64 of Jelly) or messages (an array of N-Quads); a
// line is the answer.
'use strict';
const { createInterface } = require('node:readline');
const N3 = require('n3');
const jsonld = require('jsonld');

const lines = (quads) => new N3.Writer({ format: 'N-Quads' }).quadsToString(quads);
const parse = (text) => new N3.Parser({ format: 'N-Quads', blankNodePrefix: '' }).parse(text);

const modes = {
  'n3-read': ({ format, input }) =>
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
  'n3-write': async ({ format, input }) => {
    let log = '';
    const stream = { write: (chunk, _, done) => ((log += chunk), done && done()), end: (done) => done && done() };
    let version = '1.2-messages';
    for (const text of input) {
      const writer = new N3.Writer(stream, { format, version, end: false });
      writer.addQuads(parse(text));
      writer.end();
      log += 'MESSAGE\n';
      version = undefined;
    }
    return log;
  },
  'jsonld-read': async ({ input }) => {
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
  'jsonld-write': async ({ input }) => {
    const documents = [];
    for (const text of input) {
      documents.push({ '@graph': await jsonld.fromRDF(text, { format: 'application/n-quads' }) });
    }
    return documents.map((document) => `${JSON.stringify(document)}\n`).join('');
  },
  'jelly-read': async ({ input }) => {
    const { Parser } = require('rdfjs-jelly'); // in no registry, so that it may be absent
    return new Parser().parseMessages(Buffer.from(input, 'base64')).map(lines);
  },
};

(async () => {
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    const answer = await modes[request.mode](request).then(
      (result) => ({ result }),
      (error) => ({ error: String(error) }),
    );
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
})();
