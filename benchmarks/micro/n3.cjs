// The peer of benchmarks/micro/lines.py: `node n3.cjs read|write LOG`, with npm's n3 in NODE_PATH.
// Prints seconds, quads and messages of one run as JSON; what is read or written is in memory.
'use strict';
const { readFileSync } = require('node:fs');
const N3 = require('n3');

function read(bytes, onMessage, done) {
  let quads = [];
  const options = { format: 'application/n-quads', directives: ['message'], parseUnsupportedVersions: true };
  new N3.Parser(options).parse(bytes.toString('utf8'), {
    onQuad(error, quad) {
      if (error) throw error;
      if (quad) quads.push(quad);
      else done();
    },
    onDirective() {
      onMessage(quads);
      quads = [];
    },
  });
}

function write(messages) {
  let log = '';
  const stream = {
    write(chunk, encoding, done) {
      log += chunk;
      if (done) done();
    },
    end(done) {
      if (done) done();
    },
  };
  const writer = new N3.Writer(stream, { format: 'N-Quads', version: '1.2-messages' });
  for (const quads of messages) {
    writer.addQuads(quads);
    log += 'MESSAGE\n';
  }
  writer.end();
  return Buffer.from(log, 'utf8');
}

const [, , what, path] = process.argv;
const bytes = readFileSync(path);
const held = [];
let started = process.hrtime.bigint();
let messages = 0;
let quads = 0;
read(bytes, message => {
  messages += 1;
  quads += message.length;
  if (what === 'write') held.push(message);
}, () => {
  if (what === 'write') {
    started = process.hrtime.bigint();
    const log = write(held);
    if (Math.abs(log.length - bytes.length) > bytes.length / 10) throw new Error(`wrote ${log.length} bytes`);
  }
  console.log(JSON.stringify({ seconds: Number(process.hrtime.bigint() - started) / 1e9, quads, messages }));
});
