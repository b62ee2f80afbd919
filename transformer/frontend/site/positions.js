// Runs the page Positions of a static site.

import { startPage } from "../hosts/site_page.js";
import { PositionsView } from "../positions/view.js";

startPage({ Positions: PositionsView });
