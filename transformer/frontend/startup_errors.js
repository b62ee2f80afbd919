// Says why a page of its own shows nothing. Any browser can run it, unlike the page's modules, before which it comes.

(function () {
  var NEEDED = "This page can't work in this browser. It needs Chrome or Edge 108, Firefox 108, Safari 16, or newer.";

  function say(sentence) {
    if (document.querySelector("[data-state=shown], canvas, [role=alert]:not([hidden])")) return; // it works, or says more itself
    var said = document.createElement("p");
    said.className = "problem";
    said.setAttribute("role", "alert");
    said.textContent = sentence;
    document.body.insertBefore(said, document.body.firstChild);
  }

  function onceThere(act) {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", act);
    else act();
  }

  addEventListener("error", function (event) {
    var isUnread = event.target instanceof HTMLScriptElement;
    if (isUnread && location.protocol === "file:") return; // the page says what would do
    onceThere(function () {
      if (isUnread) say("A part of this page couldn't be loaded. Reload the page.");
      else if (event.error) say(NEEDED + " (" + event.message + ")"); // what has no error is a warning
    });
  }, true);
  addEventListener("unhandledrejection", function (event) {
    say(NEEDED + " (" + (event.reason && event.reason.message || event.reason) + ")");
  });
  if (!("noModule" in document.createElement("script"))) onceThere(function () { say(NEEDED); });
})();
