// A browser takes the focus away from a button that is disabled; it goes to the first one beside it that isn't.
const watched = (globalThis.headsupFocus ??= new Map()); // container → what stops watching it

export default function ({ data }) {
  const within = `.st-key-${CSS.escape(data.container)}`;
  watched.get(data.container)?.();
  let had = false; // whether the focus was on one of its buttons when it was last anywhere
  const follow = ({ target }) => {
    had = target instanceof Element && target.matches(`${within} button`);
  };
  const leave = () => (had = false); // a click beside everything takes the focus away on purpose
  const restore = () => {
    if (!had || (document.activeElement && document.activeElement !== document.body && !document.activeElement.disabled)) return;
    document.querySelector(`${within} button:not(:disabled)`)?.focus({ preventScroll: true });
  };
  const observer = new MutationObserver(restore);
  observer.observe(document.body, { attributes: true, attributeFilter: ["disabled"], childList: true, subtree: true });
  document.addEventListener("focusin", follow);
  document.addEventListener("pointerdown", leave);
  const stop = () => {
    observer.disconnect();
    document.removeEventListener("focusin", follow);
    document.removeEventListener("pointerdown", leave);
  };
  watched.set(data.container, stop);
  return stop;
}
