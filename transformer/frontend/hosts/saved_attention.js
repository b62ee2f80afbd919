// A saved page that computes attention.
import { AttentionView } from "../attention/view.js";
import { startSavedPage } from "./saved_page.js";

export function showAttention() {
  startSavedPage({ Attention: AttentionView });
}
