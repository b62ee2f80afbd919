// Runs the page Attention of a static site.

import { AttentionView } from "../attention/view.js";
import { startPage } from "../hosts/site_page.js";

startPage({ Attention: AttentionView });
