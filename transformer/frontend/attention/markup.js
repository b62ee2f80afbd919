// The HTML of the instrument of the page Attention. Labels from a recording are set as text, never as markup.

const figure = (panel, stage = panel) => `
    <figure data-panel="${panel}" data-stage="${stage}">
      <figcaption><b class="title"></b> <span class="what"></span></figcaption>
      <div class="drawn"></div>
      <p class="instead" hidden></p>
    </figure>`;

export const MARKUP = `
  <div class="instrument" data-part="root" data-testid="attention">
    <div class="layout">
      <h2 class="top"><span data-part="where"></span>: <span class="sentence" data-part="overSentence"></span></h2>
      <section data-part="changing" aria-label="Change this part" hidden></section>
      <section class="one" aria-label="One head">
        ${figure("weights")}
        <p class="warning" data-part="warning" role="status"></p>
        <p class="note" data-part="note"></p>
      </section>
      <section class="over" aria-label="Over the text">
        <div class="zooming tools">
          <button type="button" data-part="closer" title="Zoom in on the selected cell (+)" aria-label="Zoom in">+</button>
          <button type="button" data-part="farther" title="Zoom out (−)" aria-label="Zoom out">−</button>
          <button type="button" data-part="whole" title="The whole text (0)">Whole text</button>
          <select data-part="direction" aria-label="Weights shown"></select>
          <button type="button" data-part="change" hidden>Change</button>
        </div>
        <div class="texts" data-part="texts"></div>
        <p class="readout" data-part="readout" role="status" aria-live="polite"></p>
        <div class="tools">
          <button type="button" class="main" data-part="derive" aria-expanded="false">How it comes about</button>
          <button type="button" data-part="png" title="Save the picture">PNG</button>
          <button type="button" data-part="csv" title="Save the numbers of this head">CSV</button>
        </div>
        <h3>What this head does <span class="note">on average over the text</span></h3>
        <p data-part="sentence"></p>
        <ul class="measures" data-part="measures"></ul>
      </section>
      <section class="all" aria-label="All heads" data-part="all">
        <header>
          <h2>All heads <span class="note">layer 0 at the bottom</span></h2>
          <label data-part="sorting">Order <select data-part="sort" aria-label="Order of the heads"></select></label>
        </header>
        <div data-part="heads"></div>
        <p class="note" data-part="pooled"></p>
      </section>
      <section class="derivation" aria-label="How it comes about" data-part="derivation" hidden>
        <div class="stages" role="group" aria-label="Step" data-part="stages"></div>
        <div class="panels" data-part="panels">${figure("raw")}${figure("scaled")}${figure("capped")}${figure("biased")}${figure("masked")}${figure("softmax", "weights")}</div>
        <div class="switches">
          <label data-part="scaleSwitch"><input type="checkbox" data-without="scale"> Without ÷ √d_head</label>
          <label data-part="maskSwitch"><input type="checkbox" data-without="mask"> Without the mask</label>
        </div>
        <section class="hand" aria-label="By hand" data-part="hand"></section>
      </section>
    </div>
    <div class="tip" popover="manual" role="tooltip" data-part="tip"></div>
  </div>`;
