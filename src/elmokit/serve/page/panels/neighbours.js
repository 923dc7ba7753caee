/** Neighbours in context over an index, beside static neighbours; senses where they are loaded. */

import { h, select } from "../dom.js";
import { examplesFor } from "../examples.js";
import { Frame } from "../frame.js";
import { markedWords } from "../marked_words.js";
import { bars, fixed, follow, textField, wordRow } from "../widgets.js";

const K = 10;
const addIndex = (model) =>
  `elmokit index sentences.txt --model ${model} --out my-index\n` +
  `elmokit serve --model ${model} --index my-index`;
const ADD_SENSES = "elmokit serve --senses senses.npz --wordnet WordNet-3.0/dict";

export function build(app) {
  const { t, view, info } = app;
  const frame = new Frame(app, "neighbours");
  const strings = t.neighbours;
  if (!info.index.available) {
    frame.body.append(missing(strings.noIndex, addIndex(app.model.name)));
    return frame;
  }
  if (info.index.model && info.index.model !== app.model.name) {
    const use = h(
      "button",
      { type: "button", onclick: () => app.setModel(info.index.model) },
      strings.useModel(info.index.model),
    );
    frame.body.append(
      h("p", { class: "notice" }, strings.otherModel(info.index.model), " ", use),
      missing(strings.buildOne(app.model.name), addIndex(app.model.name)),
    );
    return frame;
  }
  const example = examplesFor(app.model).neighbours;
  const get = (name) => view.get("neighbours", name);
  const text = () => get("text") ?? example;
  const field = textField(app, t.sentence, text(), (value) => {
    view.set("neighbours", "text", value === example ? undefined : value);
    ask();
  });
  const row = wordRow(app, t.chooseWord(t.sentence), (place) => choose(place));
  const contextual = h("ol", { class: "found", lang: app.textLang });
  const still = h("ul", { class: "bars static", lang: app.textLang });
  const noStatic = h("p", { class: "note", hidden: true }, strings.noStatic);
  const senses = h("ul", { class: "senses", lang: app.textLang });
  const sensesBox = info.senses.available
    ? h("div", { class: "column" }, h("h3", {}, strings.senses), senses)
    : h("details", {}, h("summary", {}, strings.senses), missing(strings.noSenses, ADD_SENSES));
  const result = h(
    "div",
    { class: "result", hidden: true },
    h(
      "div",
      { class: "columns wide reverse" },
      h(
        "div",
        { class: "column" },
        h("h3", {}, strings.contextual),
        contextual,
        h("p", { class: "note" }, strings.over(info.index.size, info.index.bundled)),
      ),
      h("div", { class: "column side" }, h("h3", {}, strings.static), noStatic, still),
    ),
    sensesBox,
  );
  frame.body.append(field, row.root, result);
  let words = [];
  let at = 0;
  let word = null;

  function ask(delay = undefined) {
    if (!text().trim()) {
      for (const name of ["tokens", "found", "senses"]) frame.drop(name);
      frame.request = null;
      frame.tell(t.empty);
      row.show([], null);
      result.hidden = true;
      return;
    }
    frame.ask(
      "tokens",
      "/tokenize",
      { inputs: text(), model: app.model.name },
      (given) => {
        words = given[0].map((token) => token.text);
        const old = get("at");
        let place = old === undefined ? null : Number(old);
        if (place !== null && word !== null) place = follow(words, place, word);
        if (place === null || !(place >= 0 && place < words.length)) place = usual(words);
        at = place;
        word = words[at];
        if (old !== undefined) view.set("neighbours", "at", at);
        row.show(words, at);
        if (words.length) search(0);
      },
      delay,
    );
  }

  function choose(place) {
    at = place;
    word = words[at];
    view.set("neighbours", "at", at);
    row.show(words, at);
    search(0);
  }

  /** The example's word, or the longest one. */
  function usual(tokens) {
    const wanted = tokens.indexOf(examplesFor(app.model).neighbourWord);
    if (wanted >= 0) return wanted;
    return tokens.reduce(
      (best, token, place) => (token.length > tokens[best].length ? place : best),
      0,
    );
  }

  function search(delay) {
    const request = { text: text(), position: at, k: K, model: app.model.name };
    frame.ask(
      "found",
      "/neighbours",
      request,
      (given) => {
        showFound(given);
        frame.request = {
          route: "/neighbours",
          body: request,
          shown: ['*answer["contextual"], sep="\\n"', '*answer["static"], sep="\\n"'],
        };
      },
      delay,
    );
    if (!info.senses.available) return;
    const asked = { text: text(), position: at, model: app.model.name };
    frame.ask("senses", "/senses", asked, showSenses, delay);
  }

  function showFound(given) {
    const item = select(contextual)
      .selectAll("li")
      .data(given.contextual)
      .join((enter) => {
        const each = enter.append("li");
        each.append("span").attr("class", "value");
        each.append("p").attr("class", "text");
        return each;
      });
    item.select(".value").text((each) => fixed(each.similarity));
    item.select(".text").each(function ({ tokens, position }) {
      this.replaceChildren();
      markedWords(tokens, [{ start: position, end: position + 1, group: 0 }], this);
    });
    noStatic.hidden = given.static.length > 0;
    bars(
      still,
      given.static.map((each) => ({
        name: each.word,
        value: each.similarity,
        text: fixed(each.similarity),
      })),
    );
    result.hidden = false;
  }

  function showSenses(given) {
    select(senses)
      .selectAll("li")
      .data(given.senses)
      .join("li")
      .each(function (each) {
        this.replaceChildren(
          h("span", { class: "value" }, fixed(each.score)),
          h("strong", {}, each.sense),
          ` ${each.gloss ?? ""}`,
        );
      });
  }

  ask(0);
  return frame;
}

/** A sentence about a part that is not loaded, and the command that adds it. */
export function missing(sentence, command) {
  return h("div", { class: "notice" }, h("p", {}, sentence), h("pre", { tabindex: 0 }, command));
}
