// Gives up the thread for a moment, in a long piece of work.

/** Others have their turn on this thread: sooner than a timer would give it back, and in a hidden tab, too. */
export function turn() {
  return /** @type {Promise<void>} */ (new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  }));
}
