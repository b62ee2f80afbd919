// The HTML of the instrument that fills masks. Tokens are set as text, never as markup.

const choice = (name, title) => `<select data-part="${name}" aria-label="${title}"></select>`;

export const MARKUP = `
  <section class="generation filling" data-part="root" data-testid="filling" aria-label="Filling in">
    <div class="tools">
      <button type="button" class="primary" data-part="fill" title="Fills the mask of whose word the model is surest.">Fill in</button>
      <button type="button" data-part="fillAll" title="Fills one mask after another, each time the surest.">Fill all</button>
      <button type="button" data-part="undo" title="Takes back the last change.">Undo</button>
      <button type="button" data-part="clear" title="Brings the prompt back as you typed it.">Clear</button>
    </div>
    <div class="layout">
      <div class="reading">
        <header><p class="status" data-part="status" data-testid="filling-status" aria-live="polite"></p></header>
        <div class="strip" data-part="strip" data-testid="filling-strip" role="listbox" translate="no"
             aria-label="Text, token by token" aria-orientation="horizontal"></div>
        <section class="looking" data-part="looking" data-testid="filling-attention" aria-label="Attention">
          <p><b>Attention</b> <span data-part="largest"></span></p>
          <span class="settings">${choice("layer", "Layer")}${choice("head", "Head")}</span>
        </section>
        <p class="legend">
          <span><span class="ramp looked"></span> attention, 0 to 100%</span> <span><span class="outline query"></span> the query token</span>
          <span><span class="ramp likely"></span> probability of what was filled in</span>
          <span data-part="segments" hidden><span class="outline segment"></span> the second segment, after the separator</span>
        </p>
      </div>
      <div class="choosing">
        <section data-testid="filling-candidates" aria-label="Candidates">
          <p class="title" data-part="title"></p>
          <p class="hint" data-part="hint"></p>
          <ol data-part="candidates" translate="no"></ol>
        </section>
        <button type="button" data-part="hide"></button>
        <button type="button" data-part="inside" title="Shows how the token's logit is computed in the forward pass.">Open in Inside</button>
      </div>
    </div>
  </section>`;
