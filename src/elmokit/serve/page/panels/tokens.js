/** Token by token: a table of similarities, coloured, that the arrow keys move through. */

import { h, select } from "../dom.js";
import { Frame } from "../frame.js";
import { Pair } from "../pair.js";
import { chosenLayer, fixed, layerName, layerNames, layerSlider, shade } from "../widgets.js";

const MOST = 60; // tokens of each sentence

export function build(app) {
  const { t, view } = app;
  const frame = new Frame(app, "tokens");
  const slider = layerSlider(app, (layer) => {
    view.set("tokens", "layer", layer);
    show();
  });
  const caption = h("caption", { class: "sr-only" });
  const head = h("tr", {}, h("td", {}));
  const rows = h("tbody");
  const table = h("table", { class: "heat" }, caption, h("thead", {}, head), rows);
  table.lang = app.textLang;
  const said = h("p", { class: "caption", role: "status" }, t.tokens.choose);
  const more = h("p", { class: "note", hidden: true }, t.tokens.tooMany(MOST));
  const scale = h(
    "p",
    { class: "scale" },
    t.tokens.legend[0],
    h("span", { class: "ramp context" }),
    t.tokens.legend[1],
  );
  const result = h(
    "div",
    { class: "result", hidden: true },
    slider.root,
    h("div", { class: "scroll" }, table),
    scale,
    said,
    more,
  );
  let answer = null;
  let focus = [0, 0];

  const pair = new Pair(
    frame,
    "tokens",
    (given) => {
      answer = given;
      focus = [0, 0];
      said.textContent = t.tokens.choose;
      show();
    },
    () => {
      answer = null;
      result.hidden = true;
    },
  );
  frame.body.append(pair.columns(), result);

  function show() {
    if (answer === null) return;
    const layers = layerNames(answer.layers);
    const layer = chosenLayer(layers, view.get("tokens", "layer"));
    slider.show(layers, layer);
    caption.textContent = t.tokens.table(layerName(t, layer));
    const first = answer.first.slice(0, MOST);
    const second = answer.second.slice(0, MOST);
    more.hidden = answer.first.length <= MOST && answer.second.length <= MOST;
    select(head)
      .selectAll("th")
      .data(second)
      .join("th")
      .attr("scope", "col")
      .selectAll("span")
      .data((token) => [token])
      .join("span")
      .text((token) => token);
    const row = select(rows).selectAll("tr").data(first).join("tr");
    row
      .selectAll("th")
      .data((token) => [token])
      .join("th")
      .attr("scope", "row")
      .text((token) => token);
    const cosines = answer.layers[layer];
    const data = (token, i) => second.map((other, j) => ({ i, j, value: cosines[i][j] }));
    row
      .selectAll("td")
      .data(data)
      .join("td")
      .attr("tabindex", ({ i, j }) => (i === focus[0] && j === focus[1] ? 0 : -1))
      .text(({ value }) => fixed(value))
      .call(shade, ({ value }) => value)
      .on("pointerenter focus", (event, cell) => say(cell))
      .on("click", (event) => event.currentTarget.focus())
      .on("keydown", move);
    result.hidden = false;
    frame.request = {
      route: "/similarity/tokens",
      body: pair.body,
      shown: ['answer["second"]', `*zip(answer["first"], answer["layers"]["${layer}"]), sep="\\n"`],
    };
  }

  function say({ i, j, value }) {
    said.textContent = t.tokens.cell(answer.first[i], answer.second[j], fixed(value, 3));
  }

  function move(event, { i, j }) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const [down, right] = steps[event.key];
    const next = rows.rows[i + down]?.querySelectorAll("td")[j + right];
    if (!next) return;
    event.currentTarget.tabIndex = -1;
    next.tabIndex = 0;
    focus = [i + down, j + right];
    next.focus();
  }

  pair.ask(0);
  return frame;
}
