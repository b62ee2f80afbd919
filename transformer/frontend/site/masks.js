// Runs the page Masks of a static site.

import { startPage } from "../hosts/site_page.js";
import { MasksView } from "../masks/view.js";

startPage({ Masks: MasksView });
