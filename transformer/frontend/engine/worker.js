// A worker that computes with a model, beside the page's own thread.
import { Service } from "./service.js";

const service = new Service((reply) => postMessage(reply));
globalThis.onmessage = ({ data }) => service.receive(data);
