/** Elements without templates: the content security policy allows no inline markup or styles. */

export const { select, scaleLinear, extent } = globalThis.d3;

/** Make an element. Names that begin with "on" are listeners; null and false are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

let lastId = 0;

/** A fresh id, for labels and descriptions. */
export function freshId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/** Move a roving tabindex with the arrow keys; `move` gets the new place among `count` items. */
export function onArrows(event, place, count, move) {
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  let next;
  if (event.key in steps) next = (place + steps[event.key] + count) % count;
  else if (event.key === "Home") next = 0;
  else if (event.key === "End") next = count - 1;
  else return;
  event.preventDefault();
  move(next);
}

/** A label above a control. */
export function labelled(text, control, hint = null) {
  const id = control.id || freshId("field");
  control.id = id;
  return h("div", { class: "field" }, h("label", { for: id }, text), control, hint);
}

/** A drop-down list of [value, text] pairs. */
export function dropDown(options, value, onChoose) {
  const list = h("select", { onchange: () => onChoose(list.value) });
  for (const [each, text] of options) {
    list.append(h("option", { value: each, selected: each === value }, text));
  }
  return list;
}
