// Runs the page Inside of a static site.

import { InsideView } from "../inside/view.js";
import { startPage } from "./page.js";

startPage({ Inside: InsideView });
