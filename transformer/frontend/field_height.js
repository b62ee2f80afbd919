// Makes a text field as high as its text where a browser doesn't know `field-sizing: content`, as in Safari.

/** Returns what is to be called when the field's text was changed by a script. @param {HTMLTextAreaElement} field */
export function fitToText(field) {
  if (CSS.supports("field-sizing", "content")) return () => {};
  const fit = () => {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight + field.offsetHeight - field.clientHeight}px`;
  };
  let width = 0;
  const onResize = () => {
    if (field.clientWidth === width) return;
    width = field.clientWidth;
    fit();
  };
  field.addEventListener("input", fit);
  new ResizeObserver(onResize).observe(field);
  return fit;
}
