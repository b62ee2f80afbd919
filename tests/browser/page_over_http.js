// A host of the shell that has nothing but the API: pages whose models a server computes.
import { AttentionView } from "../../transformer/frontend/attention/view.js";
import { Api } from "../../transformer/frontend/api.js";
import { GenerationView } from "../../transformer/frontend/generation/view.js";
import { InsideView } from "../../transformer/frontend/inside/view.js";
import { HttpAnswers } from "../../transformer/frontend/page/answers.js";
import { pageState } from "../../transformer/frontend/page/page_state.js";
import { Shell } from "../../transformer/frontend/page/shell.js";

const VIEWS = { Attention: AttentionView, Generate: GenerationView, Inside: InsideView };
const { models } = await new Api({}).json("models");
const hostOf = (title) => ({
  page: { title, sentence: "" }, views: VIEWS, answers: new HttpAnswers({ replaced: (name) => shell.reopen(name) }),
  catalogue: models.map((model) => ({ ...model, group: "" })),
  navigate: (other) => shell.update(hostOf(other)),
  changed: (_, { text }) => (document.body.dataset.read = text ? text.tokens.join() : "nothing"),
});
pageState();
const shell = new Shell(document.querySelector("main"), hostOf("Attention"));
