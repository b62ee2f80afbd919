// Says why a page of its own shows nothing. Browsers of many more years can run it than the page's modules, before which it comes.

{
  const NEEDED = "This page can't work in this browser. It needs Chrome or Edge 108, Firefox 108, Safari 16, or newer.";

  const say = (sentence) => {
    if (document.querySelector("[data-state=shown], canvas, [role=alert]:not([hidden])")) return; // it works, or says more itself
    const said = document.createElement("p");
    said.className = "problem";
    said.setAttribute("role", "alert");
    said.textContent = sentence;
    document.body.insertBefore(said, document.body.firstChild);
  };

  const onceThere = (act) => {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", act);
    else act();
  };

  addEventListener("error", (event) => {
    const isUnread = event.target instanceof HTMLScriptElement;
    if (isUnread && location.protocol === "file:") return; // the page says what would do
    onceThere(() => {
      if (isUnread) say("A part of this page couldn't be loaded. Reload the page.");
      else if (event.error) say(`${NEEDED} (${event.message})`); // what has no error is a warning
    });
  }, true);
  addEventListener("unhandledrejection", ({ reason }) => say(`${NEEDED} (${(reason && reason.message) || reason})`));
  if (!("noModule" in document.createElement("script"))) onceThere(() => say(NEEDED));
}
