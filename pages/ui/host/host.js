// Mounts the shell as a component of the app: one for all pages, whose element Streamlit keeps when another page is opened.
import { HttpAnswers } from "../../../transformer/frontend/page/answers.js";
import { pageState } from "../../../transformer/frontend/page/page_state.js";
import { Shell } from "../../../transformer/frontend/page/shell.js";
import { pageLink } from "./page_link.js";
import { drawForPaper } from "../../../transformer/frontend/printing.js";
import { acknowledge } from "../components/event_queue.js";
import { guideMenu } from "../components/guide/guide.js";
import { remember, wasSeen } from "../components/guide/tour.js";
import { Exchange } from "./exchange.js";
/** @import { ShellHost, ListedModel } from "../../../transformer/frontend/page/shell.js" */
/** @import { Views } from "../../../transformer/frontend/page/view_slot.js" */
/** @import { Told } from "./exchange.js" */

/**
 * @typedef {object} PageData what Python tells of a page. view: the page whose view a lesson's step shows; own: keys of the visitor's models
 * @property {{ title: string, sentence: string }} page
 * @property {string} view
 * @property {boolean} uses_model
 * @property {boolean} is_bare
 * @property {boolean} is_fixed
 * @property {boolean} is_linked
 * @property {boolean} offers_tour
 * @property {ListedModel[]} catalogue
 * @property {string[]} own
 * @property {string[]} notices
 * @property {number[]} heard
 * @property {string | null} next_page
 *
 * @typedef {Told & PageData} Page
 * @typedef {(name: string, value: unknown) => void} Setter
 */

/** The views that the frontend draws whole, by page; each is fetched with the first page that has it. @type {Record<string, () => Promise<Views>>} */
const VIEWS = {
  Generate: async () => ({ Generate: (await import("../../../transformer/frontend/generation/view.js")).GenerationView, Filling: (await import("../../../transformer/frontend/filling/view.js")).FillingView }),
  Attention: async () => ({ Attention: (await import("../../../transformer/frontend/attention/view.js")).AttentionView }),
  Masks: async () => ({ Masks: (await import("../../../transformer/frontend/masks/view.js")).MasksView }),
  Positions: async () => ({ Positions: (await import("../../../transformer/frontend/positions/view.js")).PositionsView }),
  Inside: async () => ({ Inside: (await import("../../../transformer/frontend/inside/view.js")).InsideView }),
  "What if": async () => ({ "What if": (await import("../../../transformer/frontend/what_if/view.js")).WhatIfView }),
};

/** @type {{ shell: Shell, root: HTMLElement } | null} */
let shown = null;
/** @type {Exchange | null} */
let exchange = null;
/** @type {Page} */
let page;
/** @type {HTMLElement} */
let root;
/** @type {Setter} sends Python an event */
let tell;
/** @type {HTMLElement | null} where a lesson's step shows a view */
let stepPlace = null;
const answers = new HttpAnswers({ isOwn: (name) => page.own.includes(name), replaced: (name) => shown?.shell.reopen(name) });

/** @param {{ key: string, data: Page, parentElement: HTMLElement, setStateValue: Setter, setTriggerValue: Setter }} component */
export async function mountShell({ key, data, parentElement, setStateValue, setTriggerValue }) {
  const found = /** @type {HTMLElement} */ (parentElement.querySelector("[data-part=root]"));
  if (!data || !found || trimmed(data.path) !== trimmed(location.pathname)) return; // after Back, a page that was drawn late
  [page, root, tell] = [data, found, setTriggerValue];
  document.documentElement.dataset.headsupPage = data.page.title;
  acknowledge(data, { key, setStateValue });
  exchange ??= new Exchange(pageState(), { stale: (isStale) => document.documentElement.toggleAttribute("data-headsup-stale", isStale) });
  exchange.draw(data, (message) => setStateValue("page_state", message));
  await settled(parentElement.querySelector("link"));
  if (page === data) draw();
}

/** A lesson's step has a place for the view that it shows. @param {{ parentElement: HTMLElement }} component */
export async function mountStepView({ parentElement }) {
  stepPlace = parentElement.querySelector("[data-part=root]");
  await settled(parentElement.querySelector("link"));
  if (page?.view && shown) draw();
}

async function draw() {
  const data = page;
  const views = (await VIEWS[data.view || data.page.title]?.()) ?? {};
  if (page !== data) return;
  const host = hostOf(data, views);
  if (shown?.root === root) shown.shell.update(host);
  else {
    root.replaceChildren();
    shown = { root, shell: new Shell(root, host) };
    drawForPaper(() => shown.shell.redraw());
  }
  shown.shell.redraw();
  if (data.next_page) pageLink(data.next_page)?.click();
}

/** Resolves when a style sheet is there, or can't be had. @param {HTMLLinkElement} link */
const settled = (link) => link.sheet ?? new Promise((resolve) => ["load", "error"].forEach((kind) => link.addEventListener(kind, resolve, { once: true })));

/** @param {Page} data @param {Views} views @returns {ShellHost} */
function hostOf({ page, view, uses_model: usesModel, is_bare: isBare, is_fixed: isFixed, is_linked: isLinked, offers_tour: offersTour, catalogue, notices }, views) {
  const menu = guideMenu();
  const offer = { title: "New here? Take the tour", dismissal: "No tour", act: menu[0].act, dismiss: remember };
  return {
    page, views, usesModel, isBare, isFixed, isLinked, catalogue, notices, noticesRead: () => tell("notices_read", true), answers, menu, offer: offersTour && !wasSeen() ? offer : null,
    embedded: view && stepPlace?.isConnected ? { page: view, place: stepPlace } : undefined,
    navigate: (title) => (view ? tell("navigate", title) : pageLink(title)?.click()), // Python keeps the step's view for the other page
  };
}

const trimmed = (path) => path.replace(/\/+$/, "");
