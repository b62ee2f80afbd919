// Fetches what draws charts, nearly 5 MB, while the first page is looked at: the first page with a chart then has it.
const CALM_MS = 2500;

export default function ({ data }) {
  if (globalThis.headsupChartsAhead || !data.script || navigator.connection?.saveData) return;
  globalThis.headsupChartsAhead = true;
  const fetchIt = () => {
    const own = [...document.scripts].find((script) => script.src.includes("/static/js/"));
    if (!own) return;
    const link = document.createElement("link");
    link.rel = "modulepreload";
    link.href = new URL(data.script, own.src).href;
    document.head.append(link);
  };
  setTimeout(() => (globalThis.requestIdleCallback ?? setTimeout)(fetchIt), CALM_MS);
}
