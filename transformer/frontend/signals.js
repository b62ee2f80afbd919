// Combines abort signals, as AbortSignal.any does, which browsers have since 2024.

/** A signal that is aborted as soon as one of these is. @param {AbortSignal[]} signals */
export function anyOf(signals) {
  const any = new AbortController();
  for (const one of signals) {
    if (one.aborted) any.abort(one.reason);
    else one.addEventListener("abort", () => any.abort(one.reason), { signal: any.signal });
  }
  return any.signal;
}
