// A browser takes the focus away from a button that is disabled; it goes to the first one beside it that isn't.
const REST_MS = 150; // buttons of one answer of the server's change one after another
const watched = (globalThis.headsupFocus ??= new Map()); // container → what stops watching it

export default function ({ data }) {
  const within = `.st-key-${CSS.escape(data.container)}`;
  watched.get(data.container)?.();
  let last = null; // the button of the container that has the focus, or had it until it was disabled
  let lost = false;
  let timer = 0;
  const usable = (button) => button.isConnected && !button.disabled;
  const follow = ({ target }) => {
    last = target instanceof HTMLButtonElement && target.closest(within) ? target : null;
    lost = false;
  };
  const leave = () => (last = null); // a click beside everything takes the focus away on purpose
  const restore = () => {
    const active = document.activeElement;
    if (!last || (active && active !== document.body && active !== last)) return;
    const next = usable(last) ? last : document.querySelector(`${within} button:not(:disabled)`);
    next?.focus({ preventScroll: true });
  };
  const observer = new MutationObserver((changes) => {
    if (!last || !changes.some(({ target }) => target.closest?.(within))) return;
    lost ||= !usable(last);
    if (!lost) return;
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
