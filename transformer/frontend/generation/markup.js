// The HTML of the instrument of the page Generate. Tokens are set as text, never as markup.

import { parameter } from "../page/page_state.js";

const range = (name) => `min="${parameter(name).low}" max="${parameter(name).high}"`;

const slider = (name, title, step, help) => `
  <label class="setting">${title}
    <input type="range" title="${help}" data-setting="${name}" ${range(name)} step="${step}" aria-label="${title}">
    <span class="value" data-value="${name}"></span>
  </label>`;

const number = (name, title, help) => `
  <label class="setting">${title}
    <input type="number" title="${help}" data-setting="${name}" ${range(name)} step="1" aria-label="${title}">
  </label>`;

const choice = (name, title) => `<select data-setting="${name}" aria-label="${title}"></select>`;

const DRAWN = [
  ["logits", "Logits", ""],
  ["scaled", "÷ temperature", slider("temperature", "Temperature", 0.05, "Divides the logits. 0 always chooses the likeliest token; values above 1 flatten the probabilities.")],
  ["kept", "Top-k, top-p", slider("top_k", "Top-k", 1, "Restricts sampling to the k likeliest tokens. 0 turns it off.")
    + slider("top_p", "Top-p", 0.05, "Restricts sampling to the likeliest tokens whose probabilities sum to this. 1 turns it off.")],
  ["probabilities", "Probabilities", ""],
  ["point", "Random number", number("seed", "Seed", "The same seed, prompt and settings always give the same text.")],
].map(([name, title, settings]) => `
  <li data-drawn="${name}">
    <div class="line"><p><b>${title}</b> <span class="text"></span></p><span class="settings">${settings}</span></div>
    <div class="plot"><canvas class="picture"></canvas></div>
  </li>`).join("");

export const MARKUP = `
  <section class="generation" data-part="root" data-testid="live-text" aria-label="Writing">
    <div class="tools" data-part="tools">
      <button type="button" class="primary" data-part="generate" title="Generates tokens one after another.">Generate</button>
      <button type="button" data-part="writeOne" title="Generates one token.">Step</button>
      <button type="button" data-part="stop">Stop</button>
      <button type="button" data-part="clear" title="Removes the generated text and keeps the prompt. Undo restores it.">Clear</button>
      <button type="button" data-part="undo" title="Goes back to the text before the last branch.">Undo</button>
      <button type="button" class="more" data-part="sampling" aria-expanded="false"
              title="Number of tokens, pace, temperature, top-k, top-p, and seed.">Sampling</button>
    </div>
    <div class="layout">
      <div class="reading" data-part="reading">
        <header>
          <p class="status" data-part="status" data-testid="live-text-status" aria-live="polite"></p>
          <button type="button" data-part="aside"></button>
        </header>
        <div class="strip" data-part="strip" data-testid="live-text-strip" role="listbox" translate="no"
             aria-label="Text, token by token" aria-orientation="horizontal"></div>
        <p class="details" data-part="details"></p>
        <section class="looking of-attention" data-testid="live-text-picture" aria-label="Attention">
          <p><b>Attention</b> <span data-part="largest"></span></p>
          <span class="settings" data-part="heads">${choice("attention", "Looks at")}${choice("layer", "Layer")}${choice("head", "Head")}</span>
        </section>
        <p class="legend">
          <span class="of-attention"><span class="ramp looked"></span> attention, 0 to 100%</span> <span class="of-attention"><span class="outline query"></span> the query token</span>
          <span><span class="ramp likely"></span> probability, 0 to 100%</span> <span><span class="outline"></span> the chosen token</span>
        </p>
        <div class="timeline">
          <button type="button" data-part="previous" aria-label="Previous token">‹</button>
          <input type="range" data-part="timeline" data-testid="live-text-timeline" step="1" aria-label="Token to look at">
          <button type="button" data-part="next" aria-label="Next token">›</button>
          <span class="position" data-part="position"></span>
        </div>
      </div>
      <div class="choosing">
        <section data-testid="live-text-candidates" aria-label="Candidates">
          <p class="title" data-part="title"></p>
          <p class="hint" data-part="hint"></p>
          <ol data-part="candidates" translate="no"></ol>
        </section>
        <p class="legend">
          <span><span class="key wide"></span> probability</span> <span><span class="key thin"></span> with temperature, top-k, top-p</span> <span>✓ written</span>
        </p>
        <button type="button" data-part="inside" title="Shows how the token's logit is computed in the forward pass.">Open in Inside</button>
      </div>
    </div>
    <section class="drawn" data-part="drawn" data-testid="live-text-drawn" aria-label="How the next token is drawn" hidden>
      <span class="settings">
        ${number("tokens", "Number of tokens", "The number of tokens that Generate adds.")}
        <label class="setting">Pace ${choice("pace", "Pace")}</label>
      </span>
      <header><h2>How the next token is drawn</h2><p class="legend"><span data-part="drawnPlace"></span></p></header>
      <ol>${DRAWN}</ol>
      <div class="verdict">
        <p data-part="verdict"></p>
        <button type="button" data-part="instead"></button>
      </div>
    </section>
    <section class="branches" data-part="branches" data-testid="live-text-branches" aria-labelledby="branches" hidden>
      <h2 id="branches">Branches</h2>
      <ul data-part="branchList"></ul>
      <div class="compared" data-part="compared" data-testid="live-text-compared" hidden>
        <div><p class="title" data-part="ownTitle"></p><p class="strip" data-part="ownText" translate="no"></p></div>
        <div><p class="title" data-part="otherTitle"></p><p class="strip" data-part="otherText" translate="no"></p></div>
      </div>
    </section>
    <footer>
      <details>
        <summary>Attention as bars</summary>
        <div class="columns" data-part="columns" role="img" translate="no"></div>
      </details>
      <details data-part="numbers">
        <summary>Written tokens as a table</summary>
        <div class="table" data-part="table" tabindex="0" role="region" aria-label="Written tokens as a table"></div>
      </details>
      <span class="saving">
        <button type="button" class="save" data-part="csv">Save as CSV</button>
        <button type="button" class="save" data-part="png">Save as PNG</button>
      </span>
    </footer>
    <div class="tip" data-part="tip" role="tooltip" popover="manual"></div>
  </section>`;
