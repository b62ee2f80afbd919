// The nodes of the instrument. Nothing of a recording is in here: labels come in as text, never as markup.

const STAGES = ["raw", "scaled", "masked", "weights"];

const PANELS = STAGES.map(
  (stage) => `
    <figure data-panel="${stage}">
      <figcaption><b class="title"></b> <span class="what"></span></figcaption>
      <div class="drawn"></div>
      <p class="instead" hidden></p>
    </figure>`,
).join("");

export const MARKUP = `
  <div class="instrument" data-part="root" data-testid="attention">
    <div class="layout">
      <section class="all" aria-label="All heads">
        <header>
          <h2>All heads</h2>
          <label>Order <select data-part="sort" aria-label="Order of the heads"></select></label>
        </header>
        <div data-part="heads"></div>
        <p class="note" data-part="pooled"></p>
      </section>
      <section class="one" aria-label="One head">
        <header>
          <h2 data-part="where"></h2>
          <div class="tools">
            <button type="button" data-part="closer" title="Zoom in on the selected cell (+)" aria-label="Zoom in">+</button>
            <button type="button" data-part="farther" title="Zoom out (−)" aria-label="Zoom out">−</button>
            <button type="button" data-part="whole" title="The whole text (0)">Whole text</button>
            <button type="button" data-part="change" hidden>Change</button>
            <button type="button" data-part="png" title="Save what is drawn as a picture">PNG</button>
            <button type="button" data-part="csv" title="Save this head's numbers as a table">CSV</button>
          </div>
        </header>
        <section data-part="changing" aria-label="Change what is looked at" hidden></section>
        <p class="sentence" data-part="sentence"></p>
        <ul class="measures" data-part="measures"></ul>
        <div class="stages" role="group" aria-label="Step" data-part="stages"></div>
        <div class="panels" data-part="panels">${PANELS}</div>
        <p class="readout" data-part="readout" role="status" aria-live="polite"></p>
        <div class="switches">
          <label data-part="scaleSwitch"><input type="checkbox" data-without="scale"> Without ÷ √d_head</label>
          <label data-part="maskSwitch"><input type="checkbox" data-without="mask"> Without the mask</label>
          <span class="warning" data-part="warning" role="status"></span>
        </div>
        <p class="note" data-part="note"></p>
      </section>
      <section class="over" aria-label="Over the text">
        <header>
          <h2>Over the text</h2>
          <div class="tools">
            <select data-part="direction" aria-label="Which weights are shown"></select>
            <select data-part="share" aria-label="Of which heads"></select>
          </div>
        </header>
        <p class="sentence" data-part="overSentence"></p>
        <div class="texts" data-part="texts"></div>
        <p class="legend over-legend"><span>weight 0</span><i class="ramp" data-part="overRamp"></i><span>1</span></p>
      </section>
      <section class="hand" aria-label="By hand" data-part="hand"></section>
    </div>
    <div class="tip" popover="manual" role="tooltip" data-part="tip"></div>
  </div>`;
