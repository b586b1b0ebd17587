// The other side of gRPC: a client or a server by @grpc/grpc-js, whose frames protobuf.js reads and writes again.
// The first argument is what to do, the second the folder of the .proto files, the third its orders as JSON.
// Each line of the output is a JSON object.
"use strict";
const fs = require("fs");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [, , mode, folder, said] = process.argv;
const orders = JSON.parse(said);
const definition = loader.loadSync("grpc.proto", {
  includeDirs: [folder], keepCase: true, longs: String, enums: String, defaults: false, oneofs: true,
});
const Service = grpc.loadPackageDefinition(definition).eu.ostrzyciel.jelly.core.proto.v1.RdfStreamService;
const { SubscribeRdf } = Service.service;
const write = SubscribeRdf.responseSerialize;
const read = SubscribeRdf.responseDeserialize;

const tell = (line) => fs.writeSync(1, JSON.stringify(line) + "\n");
const base64 = (frame) => write(frame).toString("base64");
const frames = (orders.frames || []).map((frame) => read(Buffer.from(frame, "base64")));

function metadata(values) {
  const made = new grpc.Metadata();
  for (const [name, value] of Object.entries(values || {})) made.set(name, value);
  return made;
}

function failure(error) {
  return { code: error.code, details: error.details, trailers: error.metadata ? error.metadata.getMap() : {} };
}

const GZIP = { "grpc.default_compression_algorithm": 2 };

function client() {
  const credentials = orders.ca
    ? grpc.credentials.createSsl(fs.readFileSync(orders.ca)) : grpc.credentials.createInsecure();
  return new Service(orders.address, credentials, orders.gzip ? GZIP : {});
}

function subscribe() {
  const stub = client();
  const call = stub.SubscribeRdf(orders.request, metadata(orders.metadata));
  let count = 0;
  call.on("metadata", (headers) => tell({ headers: headers.getMap() }));
  call.on("data", (frame) => {
    tell({ frame: base64(frame) });
    count += 1;
    if (count === orders.count) call.cancel();
  });
  call.on("error", (error) => { tell(failure(error)); stub.close(); });
  call.on("end", () => { tell({ end: true }); stub.close(); });
}

function publish() {
  const stub = client();
  const call = stub.PublishRdf(metadata(orders.metadata), (error, reply) => {
    tell(error ? failure(error) : { reply });
    if (error) stub.close();
  });
  call.on("status", (status) => { tell({ trailers: status.metadata.getMap() }); stub.close(); });
  for (const frame of frames) call.write(frame);
  if (!orders.stays) call.end();
}

function serve() {
  let refusals = orders.refusals || 0;
  const server = new grpc.Server(orders.gzip ? GZIP : {});
  server.addService(Service.service, {
    SubscribeRdf(call) {
      tell({ request: call.request, metadata: call.metadata.getMap() });
      if (refusals > 0) {
        refusals -= 1;
        call.emit("error", { code: orders.code, details: "not now", metadata: metadata(orders.trailers) });
        return;
      }
      if (orders.plain && call.request.requested_options) {
        call.emit("error", { code: grpc.status.INVALID_ARGUMENT, details: "no such physical type" });
        return;
      }
      call.sendMetadata(metadata(orders.headers));
      for (const frame of frames) call.write(frame);
      if (!orders.stays) call.end();
    },
    PublishRdf(call, reply) {
      tell({ metadata: call.metadata.getMap() });
      if (refusals > 0) {
        refusals -= 1;
        reply({ code: orders.code, details: "not now", metadata: metadata(orders.trailers) });
        return;
      }
      const taken = [];
      call.on("data", (frame) => taken.push(base64(frame)));
      call.on("end", () => { tell({ taken }); reply(null, {}); });
    },
  });
  const credentials = orders.key
    ? grpc.ServerCredentials.createSsl(null, [{
      private_key: fs.readFileSync(orders.key), cert_chain: fs.readFileSync(orders.certificate),
    }])
    : grpc.ServerCredentials.createInsecure();
  server.bindAsync("127.0.0.1:0", credentials, (error, port) => {
    if (error) throw error;
    tell({ port });
  });
}

({ subscribe, publish, serve })[mode]();
