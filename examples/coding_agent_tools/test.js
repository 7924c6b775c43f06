// The tests of the coding agent's project: a program in Node.js with the stock OpenTelemetry SDK.
"use strict";

const { propagation, ROOT_CONTEXT, trace } = require("@opentelemetry/api");
const { NodeSDK } = require("@opentelemetry/sdk-node");

const sdk = new NodeSDK();
sdk.start();
const parent = propagation.extract(ROOT_CONTEXT, { traceparent: process.env.TRACEPARENT });
trace.getTracer("test").startSpan("test prices", {}, parent).end();
console.log("2 passed");
sdk.shutdown();
