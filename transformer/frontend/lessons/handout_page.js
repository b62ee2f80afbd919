// Shows the handout of the lesson that lies in the page.

import { partsOf, putHtml } from "../dom.js";
import { handout } from "./handout.js";

const { about, handout: root } = partsOf(document);
putHtml(root, handout(JSON.parse(about.textContent)));
