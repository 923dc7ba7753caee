/** How it reads: surprisal in both directions, and what each direction expected. */

import { h, onArrows, select } from "../dom.js";
import { examplesFor } from "../examples.js";
import { Frame } from "../frame.js";
import { bars, fixed, follow, shade, textField } from "../widgets.js";

const MOST_BITS = 16; // the deepest colour
const K = 10;

export function build(app) {
  const { t, view } = app;
  const frame = new Frame(app, "reading");
  const get = (name) => view.get("reading", name);
  const example = examplesFor(app.model).reading;
  const text = () => get("text") ?? example;
  const field = textField(app, t.sentence, text(), (value) => {
    view.set("reading", "text", value === example ? undefined : value);
    ask();
  });
  const strip = h("div", { class: "strip", role: "radiogroup", "aria-label": t.reading.strip });
  strip.lang = app.textLang;
  const perplexity = h("p", { class: "note" });
  const [forwardKey, backwardKey] = ["forward", "backward"].map((direction) => {
    const [least, most] = t.reading.legend(t.reading[direction]);
    return h("span", {}, `${least} `, h("span", { class: `ramp ${direction}` }), ` ${most}`);
  });
  const legend = h("p", { class: "scale" }, forwardKey, backwardKey);
  const title = h("h3");
  const lists = ["forward", "backward", "both"].map((direction) => {
    const list = h("ul", { class: `bars ${direction}`, lang: app.textLang });
    const root = h(
      "div",
      { class: "column", hidden: true },
      h("h4", {}, t.reading[direction]),
      h("p", { class: "note" }, t.reading[`${direction}Note`]),
      list,
    );
    return { direction, list, root };
  });
  const expected = h(
    "div",
    { class: "expected", hidden: true },
    title,
    h("div", { class: "columns three" }, ...lists.map(({ root }) => root)),
  );
  const result = h("div", { class: "result", hidden: true }, strip, legend, perplexity, expected);
  frame.body.append(field, result);
  let answer = null;
  let at = null;
  let word = null;

  function ask(delay = undefined) {
    if (!text().trim()) {
      frame.drop("surprisal");
      frame.drop("substitutes");
      frame.request = null;
      frame.tell(t.empty);
      result.hidden = true;
      return;
    }
    frame.ask(
      "surprisal",
      "/surprisal",
      { inputs: text(), model: app.model.name },
      (given) => {
        answer = given;
        const words = answer.tokens.map((token) => token.text);
        const old = get("at");
        at = null;
        if (old !== undefined) at = word === null ? Number(old) : follow(words, Number(old), word);
        if (words[at] === undefined) at = null;
        if (old !== undefined) view.set("reading", "at", at);
        at ??= mostSurprising(answer.tokens);
        show();
        expect(0);
      },
      delay,
    );
  }

  function choose(place) {
    at = place;
    view.set("reading", "at", at);
    show();
    expect(0);
  }

  function show() {
    word = answer.tokens[at].text;
    const both = answer.tokens.some((token) => token.backward_bits !== null);
    const cells = select(strip)
      .selectAll("button")
      .data(answer.tokens)
      .join((enter) => {
        const cell = enter.append("button").attr("type", "button").attr("role", "radio");
        cell.append("span").attr("class", "token");
        cell.append("span").attr("class", "bits forward");
        cell.append("span").attr("class", "bits backward");
        return cell;
      });
    cells
      .attr("aria-checked", (_, place) => String(place === at))
      .attr("tabindex", (_, place) => (place === at ? 0 : -1))
      .attr("aria-label", describe)
      .on("click", (event) => choose(places().indexOf(event.currentTarget)))
      .on("keydown", (event) =>
        onArrows(event, places().indexOf(event.currentTarget), answer.tokens.length, (next) => {
          places()[next].focus();
          choose(next);
        }),
      );
    cells
      .select(".token")
      .text((token) => token.text)
      .classed("unknown", (token) => !token.known);
    for (const direction of ["forward", "backward"]) {
      cells
        .select(`.${direction}`)
        .property("hidden", direction === "backward" && !both)
        .text((token) => fixed(token[`${direction}_bits`], 1))
        .call(shade, (token) => token[`${direction}_bits`] / MOST_BITS);
    }
    backwardKey.hidden = !both;
    const backward = answer.backward_perplexity;
    perplexity.textContent = t.reading.perplexity(
      fixed(answer.forward_perplexity, 1),
      backward === null ? null : fixed(backward, 1),
    );
    result.hidden = false;
    frame.request = {
      route: "/surprisal",
      body: { inputs: text(), model: app.model.name },
      shown: [
        '*[(token["text"], token["forward_bits"], token["backward_bits"]) ' +
          'for token in answer["tokens"]], sep="\\n"',
      ],
    };
  }

  const places = () => [...strip.querySelectorAll("button")];

  function describe(token) {
    const part = (direction) =>
      token[`${direction}_bits`] === null
        ? ""
        : `, ${t.reading[direction]} ${t.reading.bits(fixed(token[`${direction}_bits`], 1))}`;
    const unknown = token.known ? "" : `, ${t.reading.unknown}`;
    return token.text + unknown + part("forward") + part("backward");
  }

  function expect(delay) {
    const request = { text: text(), position: at, k: K, model: app.model.name };
    frame.ask(
      "substitutes",
      "/substitutes",
      request,
      (given) => {
        title.textContent = t.reading.expected(given.token);
        for (const { direction, list, root } of lists) {
          const words = given[direction] ?? [];
          root.hidden = !words.length;
          const most = Math.max(...words.map((each) => each.probability), 0.05);
          bars(
            list,
            words.map((each) => ({
              name: each.word,
              value: each.probability,
              text: percent(each.probability),
              chosen: each.word.toLowerCase() === given.token.toLowerCase(),
            })),
            [0, most],
          );
        }
        expected.hidden = false;
        frame.request = {
          route: "/substitutes",
          body: request,
          shown: ['answer["forward"]', 'answer["backward"]', 'answer["both"]'],
        };
      },
      delay,
    );
  }

  if (app.model.has_softmax === false) {
    frame.tell(t.reading.noSoftmax(app.model.name));
    field.hidden = true;
    return frame;
  }
  ask(0);
  return frame;
}

/** The word that surprises both directions, until a person chooses one. */
function mostSurprising(tokens) {
  const bits = tokens.map((token) => Math.min(token.forward_bits, token.backward_bits ?? Infinity));
  return bits.indexOf(Math.max(...bits));
}

function percent(share) {
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
}
