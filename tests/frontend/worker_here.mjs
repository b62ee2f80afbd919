// A worker on this thread, whose messages are copied as a real one's are.
import { Service } from "../../transformer/frontend/engine/service.js";

export class WorkerHere extends EventTarget {
  isEnded = false;
  service = new Service((reply) => setImmediate(() => {
    if (!this.isEnded) this.dispatchEvent(Object.assign(new Event("message"), { data: structuredClone(reply) }));
  }));

  postMessage(message) {
    if (!this.isEnded) setImmediate((copy) => this.service.receive(copy), structuredClone(message));
  }

  terminate() {
    this.isEnded = true;
  }
}
