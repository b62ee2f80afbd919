// Hands this tab's key over to the same tab as it will be once it is reloaded: as a cookie that is written when the tab
// is left and lives for some seconds. The server reads it when the tab connects again, and here it is taken away.
const COOKIE = "headsup_tab";

function write(value, seconds) {
  document.cookie = `${COOKIE}=${value}; max-age=${seconds}; path=/; samesite=strict`;
}

export default function ({ data }) {
  const tab = (globalThis.headsupTab ??= {});
  if (!tab.listens) {
    tab.listens = true;
    write("", 0);
    addEventListener("pagehide", () => tab.key && write(tab.key, tab.seconds));
    addEventListener("pageshow", () => write("", 0)); // the browser may keep a page that is left, and show it again
  }
  tab.key = data.key;
  tab.seconds = data.seconds;
}
