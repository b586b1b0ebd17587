// The peer of benchmarks/micro/reading.py: `node n3.cjs read|write LOG [TYPE]`, with npm's n3 in NODE_PATH.
// Prints seconds, CPU seconds, quads and messages of one run as JSON; what is read or written is in memory.
'use strict';
const { readFileSync } = require('node:fs');
const N3 = require('n3');

const [, , what, path, type = 'application/n-quads'] = process.argv;
const prefixes = {};

function read(bytes, onMessage, done) {
  let quads = [];
  const options = { format: type, directives: ['message'], parseUnsupportedVersions: true };
  new N3.Parser(options).parse(bytes.toString('utf8'), {
    onQuad(error, quad) {
      if (error) throw error;
      if (quad) quads.push(quad);
      else done();
    },
    onPrefix(prefix, iri) {
      prefixes[prefix] = iri.value;
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
  const writer = new N3.Writer(stream, { format: type, prefixes, version: '1.2-messages' });
  for (const quads of messages) {
    writer.addQuads(quads);
    writer._endStatement(); // it leaves the last one open, except in lines
    log += 'MESSAGE\n';
  }
  writer.end();
  return Buffer.from(log, 'utf8');
}

const bytes = readFileSync(path);
const held = [];
let started = process.hrtime.bigint();
let cpu = process.cpuUsage();
let messages = 0;
let quads = 0;
read(bytes, message => {
  messages += 1;
  quads += message.length;
  if (what === 'write') held.push(message);
}, () => {
  if (what === 'write') {
    started = process.hrtime.bigint();
    cpu = process.cpuUsage();
    const log = write(held);
    if (Math.abs(log.length - bytes.length) > bytes.length / 5) throw new Error(`wrote ${log.length} bytes`);
  }
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  const { user, system } = process.cpuUsage(cpu);
  console.log(JSON.stringify({ seconds, cpu: (user + system) / 1e6, quads, messages }));
});
