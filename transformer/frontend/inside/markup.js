// The HTML of the instrument of the page Inside. Labels from a recording are set as text, never as markup.

export const MARKUP = `
  <div class="inside" data-part="root" data-testid="inside">
    <div class="bar" data-part="bar">
      <div class="where">
        <div class="map" data-part="map" title="The whole model"></div>
        <nav class="trail" aria-label="Where you are" data-part="trail"></nav>
        <p class="readout" role="status" aria-live="polite" data-part="readout"></p>
        <p class="chapter" role="status" aria-live="polite" data-part="chapter" hidden></p>
      </div>
      <div class="tools">
        <div class="play" data-part="play"></div>
        <label data-part="arcs">Attention <select data-part="head" aria-label="Attention shown"></select></label>
        <button type="button" class="control" data-part="change" hidden>Change</button>
      </div>
    </div>
    <p class="signs" data-part="legend"></p>
    <section data-part="changing" aria-label="Change this part" hidden></section>
    <div class="scene" data-part="scene">
      <div class="stage" data-part="stage" tabindex="0" role="group" aria-label="The forward pass. Left and right choose a token, up and down a layer, Enter opens, Escape goes up, Space plays."></div>
      <div class="said">
        <div class="search" data-part="search"></div>
        <button type="button" class="navigate" data-part="navigate" title="Show this attention on the page Attention" hidden>Open in Attention</button>
        <button type="button" class="save" data-part="png">Save as PNG</button>
      </div>
      <div class="opened" data-part="opened" hidden></div>
    </div>
    <section class="below" data-part="below">
      <details><summary>How to read this picture</summary><div class="prose" data-part="prose"></div></details>
    </section>
    <div class="tip" popover="manual" role="tooltip" data-part="tip"></div>
  </div>`;
