// nats.js, the client of npm, as the other side: `node nats.cjs PORT STREAM MODE`, with its module in NODE_PATH.
// publish: standard input is a JSON array of [headers, text], each sent to the subject of the stream's name.
// read N: the first N messages as a JSON array of [headers, text].
'use strict';
const { connect, headers, consumerOpts } = require('nats');

const [port, stream, mode, count] = process.argv.slice(2);

const input = async () => {
  let text = '';
  for await (const chunk of process.stdin) text += chunk;
  return JSON.parse(text);
};

const main = async () => {
  const connection = await connect({ servers: `127.0.0.1:${port}` });
  const streams = connection.jetstream();
  if (mode === 'publish') {
    for (const [named, text] of await input()) {
      const sent = headers();
      for (const [name, value] of Object.entries(named)) sent.set(name, value);
      await streams.publish(stream, new TextEncoder().encode(text), { headers: sent });
    }
  } else {
    const read = [];
    const subscription = await streams.subscribe(stream, consumerOpts().orderedConsumer());
    for await (const message of subscription) {
      const named = {};
      for (const name of message.headers.keys()) named[name] = message.headers.get(name);
      read.push([named, new TextDecoder().decode(message.data)]);
      if (read.length === Number(count)) break;
    }
    process.stdout.write(JSON.stringify(read));
  }
  await connection.close();
};

main();
