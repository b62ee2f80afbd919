// Runs the page Generate of a static site.

import { FillingView } from "../filling/view.js";
import { GenerationView } from "../generation/view.js";
import { startPage } from "../hosts/site_page.js";

startPage({ Generate: GenerationView, Filling: FillingView });
