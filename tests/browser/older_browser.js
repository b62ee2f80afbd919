// Takes from a page or a worker what browsers of 2022 lack: Chrome 108, Firefox 108, Safari 16.0, or one of them.
{
  const global = globalThis;
  const element = global.Element?.prototype ?? {};
  const lists = [Array.prototype, Object.getPrototypeOf(Uint8Array).prototype];
  const lacking = [
    [AbortSignal, ["any", "timeout"]],
    [global.HTMLElement?.prototype, ["showPopover", "hidePopover", "togglePopover", "popover"]],
    ...lists.map((list) => [list, ["toReversed", "toSorted", "toSpliced", "with", "findLast", "findLastIndex"]]),
    [Set.prototype, ["union", "intersection", "difference", "symmetricDifference", "isSubsetOf", "isSupersetOf", "isDisjointFrom"]],
    [Object, ["groupBy"]],
    [Map, ["groupBy"]],
    [Array, ["fromAsync"]],
    [Promise, ["withResolvers", "try"]],
    [URL, ["canParse", "parse"]],
    [URLSearchParams.prototype, ["size"]],
    [RegExp, ["escape"]],
    [String.prototype, ["isWellFormed", "toWellFormed"]],
    [ReadableStream.prototype, [Symbol.asyncIterator]],
    [Intl, ["Segmenter"]],
    [global.CSS, ["highlights"]],
    [element, ["checkVisibility", "ariaLabel", "ariaPressed", "ariaHidden"]],
    [global.CanvasRenderingContext2D?.prototype, ["roundRect"]],
    [global, ["requestIdleCallback", "cancelIdleCallback", "scheduler", "Highlight", "Iterator", "CompressionStream", "DecompressionStream"]],
  ];
  const iterator = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
  lacking.push([iterator, Object.getOwnPropertyNames(iterator).filter((name) => name !== "constructor")]);
  for (const [owner, names] of lacking) if (owner) for (const name of names) delete owner[name];

  const refuse = (source) => {
    if (/\(\?<[=!]/.test(source)) throw new SyntaxError("Invalid regular expression: invalid group specifier name");
  };
  global.RegExp = new Proxy(RegExp, {
    construct(kind, given, target) {
      refuse(given[0]);
      return Reflect.construct(kind, given, target);
    },
    apply(kind, self, given) {
      refuse(given[0]);
      return Reflect.apply(kind, self, given);
    },
  });
  for (const name of ["matches", "querySelector", "querySelectorAll"]) {
    const act = element[name];
    element[name] = function (selector) {
      if (/:popover-open|:has\(/.test(selector)) throw new SyntaxError(`${selector} is not a valid selector`);
      return act.call(this, selector);
    };
  }
}
