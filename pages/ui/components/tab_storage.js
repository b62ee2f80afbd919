// Keeps a short text for the tab: in sessionStorage, which a reload, a lost connection and a server's restart don't reach.
// Or for all tabs of the browser: in localStorage.
// Browsers that block third-party cookies deny it to a frame in another origin's page. Over HTTPS, such a frame may have
// a cookie that no page but the one around it shares, which is kept for as long as the server keeps a visitor's record.
const SECONDS = 1800;

/**
 * What is kept under a name; "" if nothing is.
 *
 * @param {string} name
 * @param {"sessionStorage" | "localStorage"} [where]
 */
export function kept(name, where = "sessionStorage") {
  try {
    return globalThis[where].getItem(name) ?? "";
  } catch {
    const cookie = document.cookie.split("; ").find((each) => each.startsWith(`${name}=`)) ?? "";
    try {
      return decodeURIComponent(cookie.slice(name.length + 1));
    } catch {
      return ""; // it isn't ours
    }
  }
}

/**
 * Keep a text; "" for none. Where a browser keeps nothing, it goes with the session.
 *
 * @param {string} name
 * @param {string} text
 * @param {"sessionStorage" | "localStorage"} [where]
 */
export function keep(name, text, where = "sessionStorage") {
  try {
    if (text) globalThis[where].setItem(name, text);
    else globalThis[where].removeItem(name);
  } catch {
    const lasts = text ? SECONDS : 0;
    document.cookie = `${name}=${encodeURIComponent(text)}; Path=/; Max-Age=${lasts}; SameSite=None; Secure; Partitioned`;
  }
}
