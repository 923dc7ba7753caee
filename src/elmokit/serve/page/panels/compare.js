/** One word, two sentences: similarity by layer beside the static vector's. */

import { h } from "../dom.js";
import { Frame } from "../frame.js";
import { Pair } from "../pair.js";
import {
  bars,
  chosenLayer,
  fixed,
  follow,
  layerName,
  layerNames,
  layerSlider,
  wordRow,
} from "../widgets.js";

export function build(app) {
  const { t, view } = app;
  const frame = new Frame(app, "compare");
  const rows = [
    wordRow(app, t.chooseWord(t.first), (place) => choose("i", place)),
    wordRow(app, t.chooseWord(t.second), (place) => choose("j", place)),
  ];
  const slider = layerSlider(app, (layer) => {
    view.set("compare", "layer", layer);
    show();
  });
  const context = card(t.compare.inContext, "context");
  const still = card(t.compare.static, "static");
  still.note.textContent = t.compare.staticNote;
  const list = h("ul", { class: "bars" });
  const result = h(
    "div",
    { class: "result", hidden: true },
    slider.root,
    h("div", { class: "cards" }, context.root, still.root),
    h("h3", {}, t.compare.perLayer),
    list,
  );
  let answer = null;
  let chosen = [0, 0];
  let words = [null, null]; // at these places; they are followed when the text before them changes

  const pair = new Pair(frame, "compare", arrived, () => {
    answer = null;
    result.hidden = true;
    rows.forEach((row) => row.show([], null));
  });
  frame.body.append(pair.columns(...rows.map((row) => row.root)), result);

  function choose(name, place) {
    view.set("compare", name, place);
    chosen["ij".indexOf(name)] = place;
    show();
  }

  function arrived(given) {
    answer = given;
    const shared = sharedWord(answer.first, answer.second);
    chosen = [answer.first, answer.second].map((tokens, which) => {
      const old = view.get("compare", "ij"[which]);
      if (old === undefined) return shared[which];
      const word = words[which];
      const at = word === null ? Number(old) : follow(tokens, Number(old), word);
      const place = tokens[at] === undefined ? shared[which] : at;
      view.set("compare", "ij"[which], place);
      return place;
    });
    show();
  }

  function show() {
    if (answer === null) return;
    const [i, j] = chosen;
    words = [answer.first[i], answer.second[j]];
    rows[0].show(answer.first, i);
    rows[1].show(answer.second, j);
    const layers = layerNames(answer.layers);
    const layer = chosenLayer(layers, view.get("compare", "layer"));
    slider.show(layers, layer);
    const at = (name) => answer.layers[name][i][j];
    context.value.textContent = fixed(at(layer));
    context.note.textContent = t.compare.between(...words, layerName(t, layer));
    still.value.textContent = fixed(at(layers[0]));
    const line = (name) => ({
      name: layerName(t, name),
      value: at(name),
      text: fixed(at(name)),
      chosen: name === layer,
    });
    bars(list, layers.map(line));
    result.hidden = false;
    frame.request = {
      route: "/similarity/tokens",
      body: pair.body,
      shown: [
        `answer["first"][${i}], answer["second"][${j}]`,
        `answer["layers"]["${layer}"][${i}][${j}]`,
      ],
    };
  }

  pair.ask(0);
  return frame;
}

function card(title, kind) {
  const value = h("output", { class: "number" });
  const note = h("p", { class: "note" });
  const root = h("div", { class: `card ${kind}` }, h("h3", {}, title), value, note);
  return { root, value, note };
}

/** The places of a word of both sentences, the longest that they share; or the first words. */
function sharedWord(first, second) {
  const lower = second.map((token) => token.toLowerCase());
  let best = [0, 0];
  let length = 0;
  first.forEach((token, i) => {
    const j = lower.indexOf(token.toLowerCase());
    if (j >= 0 && token.length > length) {
      best = [i, j];
      length = token.length;
    }
  });
  return best;
}
