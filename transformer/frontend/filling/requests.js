// What the instrument that fills masks asks of a model, be it a server's or this browser's.
/** @import { Api } from "../api.js" */

/** @param {{ api: Api, modules: string[] }} shown what is asked now, and the model's attentions by layer */
export function requestsOf(shown) {
  return {
    expect: (ids) => shown.api.json("masked", { tokens: ids.join() }),
    look: async (ids, position, layer, head) => {
      const name = `${shown.modules[layer]}.hook_pattern[${head}, ${position}]`;
      return [...(await shown.api.recording("tensors", { tokens: ids.join(), names: [name] })).tensors[name].data];
    },
  };
}
