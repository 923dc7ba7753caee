/** Words with marked spans, nested or apart: entities, roles, mentions. */

import { h } from "./dom.js";

const CJK = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef\u3000-\u303f]/;

/** Put words into a paragraph; spans are [{start, end, label, group}], `end` after the last word. */
export function markedWords(words, spans, root = h("p", { class: "marked", dir: "auto" })) {
  const open = [{ node: root, end: words.length }];
  const longestFirst = [...spans].sort((x, y) => x.start - y.start || y.end - x.end);
  words.forEach((word, place) => {
    while (open.length > 1 && open.at(-1).end <= place) close(open.pop());
    if (place && space(words[place - 1], word)) open.at(-1).node.append(" ");
    for (const span of longestFirst.filter((each) => each.start === place)) {
      const node = h("mark", { class: `g${span.group % 8}` });
      open.at(-1).node.append(node);
      open.push({ node, end: span.end, label: span.label });
    }
    open.at(-1).node.append(word);
  });
  while (open.length > 1) close(open.pop());
  return root;
}

/** No space between Chinese words. */
function space(left, right) {
  return !(CJK.test(left.at(-1) ?? "") || CJK.test(right[0] ?? ""));
}

function close({ node, label }) {
  if (label) node.append(h("small", {}, label));
}

/** Numbers for names, in the order of their first occurrence: the same name, the same colour. */
export function grouping() {
  const names = new Map();
  return (name) => {
    if (!names.has(name)) names.set(name, names.size);
    return names.get(name);
  };
}
