// The nodes of the instrument. Nothing of a text is in here: tokens come in as text, never as markup.

const dial = (name, title, low, high, step, help) => `
  <label class="dial">${title}
    <input type="range" title="${help}" data-dial="${name}" min="${low}" max="${high}" step="${step}" aria-label="${title}">
    <span class="value" data-value="${name}"></span>
  </label>`;

const number = (name, title, low, high, help) => `
  <label class="dial">${title}
    <input type="number" title="${help}" data-dial="${name}" min="${low}" max="${high}" step="1" aria-label="${title}">
  </label>`;

const choice = (name, title) => `<select data-dial="${name}" aria-label="${title}"></select>`;

const DRAWN = [
  ["logits", "Logits", `<button type="button" data-part="inside" title="Shows in the whole forward pass how the token's logit comes about.">Open in Inside</button>`],
  ["scaled", "÷ temperature", dial("temperature", "Temperature", 0, 2, 0.05, "Logits are divided by it. 0 always takes the likeliest token; above 1 flattens the odds.")],
  ["kept", "Top-k, top-p", dial("top_k", "Top-k", 0, 100, 1, "Only the k likeliest tokens can be drawn. 0 turns it off.")
    + dial("top_p", "Top-p", 0.05, 1, 0.05, "Only the likeliest tokens that together reach this probability. 1 turns it off.")],
  ["odds", "Probabilities", ""],
  ["point", "Random number", number("seed", "Seed", 0, 2147483647, "The same seed, prompt and dials always write the same text.")],
].map(([name, title, dials]) => `
  <li data-drawn="${name}">
    <div class="line"><p><b>${title}</b> <span class="text"></span></p><span class="dials">${dials}</span></div>
    <div class="plot"><canvas class="picture"></canvas></div>
  </li>`).join("");

export const MARKUP = `
  <section class="writing" data-part="root" data-testid="live-text" aria-label="Writing">
    <div class="tools" data-part="tools">
      <button type="button" class="primary" data-part="generate" title="Writes as many tokens as the dial beside it says.">Generate</button>
      <button type="button" data-part="once" title="Writes one token.">Step</button>
      <button type="button" data-part="stop">Stop</button>
      <button type="button" data-part="clear" title="Takes away what was written and keeps the prompt. Undo brings it back.">Clear</button>
      <button type="button" data-part="undo" title="Goes back to the text before the last branch.">Undo</button>
      <span class="dials">
        ${number("tokens", "Number of tokens", 1, 500, "How many tokens Generate writes.")}
        <label class="dial">Pace ${choice("pace", "Pace")}</label>
      </span>
    </div>
    <div class="layout">
      <div class="reading">
        <header>
          <p class="status" data-part="status" data-testid="live-text-status" aria-live="polite"></p>
          <p class="legend">
            unsure 0 <span class="ramp" data-part="ramp"></span> 1 sure <span class="key bar"></span> attention
          </p>
        </header>
        <div class="strip" data-part="strip" data-testid="live-text-strip" role="listbox"
             aria-label="The text, token by token" aria-orientation="horizontal"></div>
        <div class="timeline">
          <button type="button" data-part="previous" aria-label="Previous token">‹</button>
          <input type="range" data-part="timeline" data-testid="live-text-timeline" min="1" step="1"
                 aria-label="Written token to look at">
          <button type="button" data-part="next" aria-label="Next token">›</button>
          <span class="place" data-part="place"></span>
        </div>
        <p class="details" data-part="details"></p>
      </div>
      <section class="choosing" data-testid="live-text-candidates" aria-label="Candidates">
        <header><p class="title" data-part="title"></p></header>
        <ol data-part="candidates"></ol>
        <p class="legend">
          <span class="key wide"></span> the model <span class="key thin"></span> as sampled <span class="key">✓</span> written
        </p>
      </section>
      <section class="looking" data-testid="live-text-picture" aria-label="Where it looked">
        <header>
          <p class="title" data-part="looker"></p>
          <span class="dials" data-part="heads">${choice("attention", "Looks at")}${choice("layer", "Layer")}${choice("head", "Head")}</span>
          <p class="legend" data-part="largest"></p>
        </header>
        <div class="columns" data-part="columns" role="img"></div>
      </section>
    </div>
    <section class="drawn" data-part="drawn" data-testid="live-text-drawn" aria-label="How the next token is drawn">
      <header><h2>How the next token is drawn</h2><p class="legend" data-part="drawnPlace"></p></header>
      <ol>${DRAWN}</ol>
      <div class="verdict">
        <p data-part="verdict"></p>
        <button type="button" data-part="instead"></button>
      </div>
    </section>
    <section class="branches" data-part="branches" data-testid="live-text-branches" aria-label="Branches" hidden>
      <header><h2>Branches</h2></header>
      <p class="legend">Every token that was chosen by hand began a branch. Return to one, or compare it with the text above.</p>
      <ul data-part="branchList"></ul>
      <div class="compared" data-part="compared" data-testid="live-text-compared" hidden>
        <div><p class="title" data-part="ownTitle"></p><p class="strip" data-part="ownText"></p></div>
        <div><p class="title" data-part="otherTitle"></p><p class="strip" data-part="otherText"></p></div>
      </div>
    </section>
    <footer>
      <details data-part="numbers">
        <summary>What was written, as a table</summary>
        <div class="table" data-part="table" tabindex="0" role="region" aria-label="What was written, as a table"></div>
      </details>
      <span class="saving">
        <button type="button" class="save" data-part="csv">Save as CSV</button>
        <button type="button" class="save" data-part="png">Save as PNG</button>
      </span>
    </footer>
    <div class="tip" data-part="tip" role="tooltip" popover="manual"></div>
  </section>`;
