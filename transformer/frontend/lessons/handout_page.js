// Shows the handout of the lesson that lies in the page.

import { partsOf, putHtml } from "../dom.js";
import { handout } from "./handout.js";

putHtml(partsOf(document).handout, handout(JSON.parse(document.getElementById("about").textContent)));
