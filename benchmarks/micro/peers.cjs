// The peers of benchmarks/micro/shapes.py in Node.js: `node peers.cjs PEER`, with n3, jsonld and rdfjs-jelly in NODE_PATH.
// Each line of standard input asks for one run: {"do": "read", "write" or "dump", "path": LOG, "type": MEDIA TYPE,
// "contexts": {…}, "prefixes": {…}}. The answer is a line with CPU seconds and quads; to dump, with the N-Quads of each
// message. Only n3 writes.
'use strict';
const { readFileSync } = require('node:fs');
const { createInterface } = require('node:readline');

const peer = process.argv[2];

function write(messages, type, prefixes) {
  const { Writer } = require('n3');
  const log = [];
  const stream = {
    write(chunk, _, done) {
      log.push(chunk);
      if (done) done();
    },
    end(done) {
      if (done) done();
    },
  };
  const writer = new Writer(stream, { format: type, prefixes });
  for (const quads of messages) {
    writer.addQuads(quads);
    writer._endStatement(); // it leaves the last one open, except in lines
    log.push('MESSAGE\n');
  }
  writer.end();
  return Buffer.from(log.join(''), 'utf8');
}

const READERS = {
  n3() {
    const { Parser, Writer } = require('n3');
    const nquads = quads => new Writer({ format: 'application/n-quads' }).quadsToString(quads);
    return ({ text, type, dump, hold }) => new Promise((resolve, reject) => {
      let quads = [];
      let count = 0;
      const messages = [];
      const end = () => {
        count += quads.length;
        if (dump) messages.push(nquads(quads));
        if (hold) messages.push(quads);
        quads = [];
      };
      const options = { format: type, directives: ['message'], parseUnsupportedVersions: true };
      new Parser(options).parse(text, {
        onQuad(error, quad) {
          if (error) reject(error);
          else if (quad) quads.push(quad);
          else {
            if (quads.length) end();
            resolve({ count, messages });
          }
        },
        onDirective: end,
      });
    });
  },
  'jsonld.js'() {
    const jsonld = require('jsonld');
    return async ({ text, dump, contexts }) => {
      const documentLoader = async url => ({ documentUrl: url, document: contexts[url] });
      const messages = [];
      let count = 0;
      for (const line of text.split('\n')) {
        if (!line) continue;
        if (dump) messages.push(await jsonld.toRDF(JSON.parse(line), { documentLoader, format: 'application/n-quads' }));
        else count += (await jsonld.toRDF(JSON.parse(line), { documentLoader })).length;
      }
      return { count, messages };
    };
  },
  async 'rdfjs-jelly'() {
    const { Writer } = require('n3');
    // what is built for browsers is in its repository, what is built for Node.js is not
    const { Parser } = await import(require.resolve('rdfjs-jelly/browser'));
    return ({ bytes, dump }) => {
      const messages = [];
      let count = 0;
      for (const message of new Parser().parseMessages(bytes)) {
        count += message.length;
        if (dump) messages.push(new Writer({ format: 'application/n-quads' }).quadsToString(message));
      }
      return { count, messages };
    };
  },
};

(async () => {
  const read = await READERS[peer]();
  for await (const line of createInterface({ input: process.stdin })) {
    const { path, ...asked } = JSON.parse(line);
    asked.dump = asked.do === 'dump';
    const bytes = readFileSync(path);
    let started = process.cpuUsage();
    const text = peer === 'rdfjs-jelly' ? '' : bytes.toString('utf8');
    const { count, messages } = await read({ ...asked, bytes, text, hold: asked.do === 'write' });
    if (asked.do === 'write') {
      started = process.cpuUsage();
      write(messages, asked.type, asked.prefixes);
    }
    const { user, system } = process.cpuUsage(started);
    const found = { cpu: (user + system) / 1e6, quads: count };
    console.log(JSON.stringify(asked.dump ? { messages } : found));
  }
})();
