// Runs the page Inside of a static site.

import { InsideView } from "../inside/view.js";
import { startPage } from "../hosts/site_page.js";

startPage({ Inside: InsideView });
