// The peer of benchmarks/micro/continuous.py: `node rsp.cjs QUERY LOG`, with npm's rsp-js and n3 in NODE_PATH.
// An element of rsp-js is one quad: a message is its quads, one after the other, at one time, a millisecond each.
// Prints seconds, messages, firings and solutions as JSON; the stream is in memory.
'use strict';
const { readFileSync } = require('node:fs');
const N3 = require('n3');
const { RSPEngine } = require('rsp-js');

const print = console.log;
for (const level of ['log', 'debug', 'info', 'error']) console[level] = () => {}; // it tells of each element

async function main() {
  const [, , query, path] = process.argv;
  const messages = readFileSync(path, 'utf8').split('# @message\n').slice(1).map(text => new N3.Parser().parse(text));
  const engine = new RSPEngine(readFileSync(query, 'utf8'));
  let solutions = 0;
  engine.register().on('RStream', () => { solutions += 1; });
  // its firings are asynchronous, and nothing tells when they are done
  const running = [];
  const execute = engine.r2r.execute.bind(engine.r2r);
  engine.r2r.execute = async data => {
    const bindings = await execute(data);
    running.push(new Promise((resolve, reject) => bindings.on('end', resolve).on('error', reject)));
    return bindings;
  };
  const [stream] = engine.get_all_streams().map(name => engine.getStream(name));
  const started = process.hrtime.bigint();
  for (let time = 0; time < messages.length; time += 1) {
    for (const quad of messages[time]) stream.add(quad, time);
    if (time % 100 === 1) { // a window has closed: let it be evaluated, as its content still changes otherwise
      await new Promise(resolve => setImmediate(resolve));
      await Promise.all(running);
    }
  }
  await Promise.all(running);
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  print(JSON.stringify({ seconds, messages: messages.length, firings: running.length, solutions }));
}

main();
