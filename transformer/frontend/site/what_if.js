// Runs the page What if of a static site.

import { startPage } from "../hosts/site_page.js";
import { WhatIfView } from "../what_if/view.js";

startPage({ "What if": WhatIfView });
