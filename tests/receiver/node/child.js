// A child of an agent run in Node.js with the stock SDK: where its spans go, the environment says.
//
//   node child.js [--ignore-context] [--grpc | --json] [--spans N]
//
// It continues TRACEPARENT, records a tool call with N spans below it, and ends when they have left.
"use strict";

const { context, propagation, ROOT_CONTEXT, trace } = require("@opentelemetry/api");
const { NodeSDK } = require("@opentelemetry/sdk-node");

const has = (option) => process.argv.includes(option);
const spans = has("--spans") ? Number(process.argv[process.argv.indexOf("--spans") + 1]) : 1;

const settings = {};
const named = has("--grpc") ? "grpc" : has("--json") ? "http" : null;
if (named) {
  const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${named}`);
  settings.traceExporter = new OTLPTraceExporter();
}
const sdk = new NodeSDK(settings);
sdk.start();

const carrier = { traceparent: process.env.TRACEPARENT, tracestate: process.env.TRACESTATE, baggage: process.env.BAGGAGE };
const parent = has("--ignore-context") ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, carrier);

const tracer = trace.getTracer("child.js");
const attributes = { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "format" };
const tool = tracer.startSpan("execute_tool format", { attributes }, parent);
for (let number = 0; number < spans; number++) {
  tracer.startSpan("node work", {}, trace.setSpan(context.active(), tool)).end();
}
tool.end();

sdk.shutdown().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
