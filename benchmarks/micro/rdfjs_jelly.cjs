// The peer of benchmarks/micro/reading.py for Jelly: `node rdfjs_jelly.cjs LOG`, with rdfjs-jelly in NODE_PATH. Prints
// CPU seconds and quads of one run as JSON; the log is in memory.
'use strict';
const { readFileSync } = require('node:fs');

const [, , path] = process.argv;

// what is built for browsers is in its repository, what is built for Node.js is not
import(require.resolve('rdfjs-jelly/browser')).then(({ Parser }) => {
  const bytes = readFileSync(path);
  const started = process.cpuUsage();
  let quads = 0;
  for (const message of new Parser().parseMessages(bytes)) quads += message.length;
  const { user, system } = process.cpuUsage(started);
  console.log(JSON.stringify({ cpu: (user + system) / 1e6, quads }));
});
