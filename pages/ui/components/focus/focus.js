// A browser takes the focus away from a button that is disabled; it goes to the first one beside it that isn't.
const REST_MS = 150; // buttons of one answer of the server's change one after another
const watched = (globalThis.headsupFocus ??= new Map()); // container → what stops watching it

export default function ({ data }) {
  const within = `.st-key-${CSS.escape(data.container)}`;
  watched.get(data.container)?.();
  let last = null; // the button of the container that has the focus, or had it until it was disabled
  let timer = 0;
  const follow = ({ target }) => {
    last = target instanceof HTMLButtonElement && target.closest(within) ? target : null;
  };
  const leave = () => (last = null); // a click beside everything takes the focus away on purpose
  const restore = () => {
    if (!last || (last.isConnected && !last.disabled)) return;
    const active = document.activeElement;
    if (active && active !== document.body && active !== last) return;
    document.querySelector(`${within} button:not(:disabled)`)?.focus({ preventScroll: true });
  };
  const observer = new MutationObserver((changes) => {
    if (!last || !changes.some(({ target }) => target.closest?.(within))) return;
    clearTimeout(timer);
    timer = setTimeout(restore, REST_MS);
  });
  observer.observe(document.body, { attributes: true, attributeFilter: ["disabled"], childList: true, subtree: true });
  document.addEventListener("focusin", follow);
  document.addEventListener("pointerdown", leave);
  const stop = () => {
    clearTimeout(timer);
    observer.disconnect();
    document.removeEventListener("focusin", follow);
    document.removeEventListener("pointerdown", leave);
  };
  watched.set(data.container, stop);
  return stop;
}
