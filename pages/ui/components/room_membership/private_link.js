// Takes up a teacher's private link: the key moves from the address bar, which a projector may show, into the tab's
// storage before anything is drawn.
import { keep } from "../tab_storage.js";
import { MEMBERSHIP } from "./room_membership.js";

const [code, key] = location.hash.slice(1).split(".");
history.replaceState(null, "", location.pathname);
// Streamlit's Community Cloud frames the app, and has the same in its own address bar.
if (parent !== window) parent.postMessage({ stCommVersion: 1, type: "UPDATE_HASH", hash: "" }, "*");
if (key) keep(MEMBERSHIP, JSON.stringify([code, key, true]));
location.replace("Learn");
