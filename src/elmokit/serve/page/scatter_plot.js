/** Points in the plane, told apart by colour and shape, that the arrow keys move through. */

import { extent, onArrows, scaleLinear, select } from "./dom.js";

const WIDTH = 640;
const HEIGHT = 400;
const MARGIN = 22;
export const SHAPES = [
  "M-6,0a6,6 0 1,0 12,0a6,6 0 1,0 -12,0", // circle
  "M-5.4,-5.4h10.8v10.8h-10.8z", // square
  "M0,-7.2L6.6,5H-6.6z", // triangle
  "M0,-7.6L6.2,0L0,7.6L-6.2,0z", // diamond
  "M0,7.2L6.6,-5H-6.6z", // triangle, point down
  "M-2.2,-6.6h4.4v4.4h4.4v4.4h-4.4v4.4h-4.4v-4.4h-4.4v-4.4h4.4z", // plus
];

/** A plot. `show` takes [{x, y, group, name}] and a label; `onPoint` gets the place of a point. */
export function scatterPlot(onPoint) {
  const svg = select(document.createElementNS("http://www.w3.org/2000/svg", "svg"))
    .attr("viewBox", `0 0 ${WIDTH} ${HEIGHT}`)
    .attr("class", "scatter")
    .attr("role", "group");
  svg
    .append("rect")
    .attr("class", "ground")
    .attr("width", WIDTH)
    .attr("height", HEIGHT)
    .attr("rx", 8);
  const layer = svg.append("g");
  let current = 0;

  function show(points, label) {
    current = Math.min(current, Math.max(0, points.length - 1));
    const { x, y } = scales(points);
    svg.attr("aria-label", label);
    layer
      .selectAll("g")
      .data(points)
      .join((enter) => {
        const point = enter.append("g").attr("role", "img");
        point.append("path");
        return point;
      })
      .attr("class", (point) => `point g${point.group % 8}`)
      .attr("aria-label", (point) => point.name)
      .attr("tabindex", (_, place) => (place === current ? 0 : -1))
      .each(function (point) {
        this.style.transform = `translate(${x(point.x)}px, ${y(point.y)}px)`;
      })
      .on("pointerenter focus click", (event) => choose(event.currentTarget))
      .on("keydown", (event) => {
        const order = points.map((_, place) => place).sort((p, q) => points[p].x - points[q].x);
        onArrows(
          event,
          order.indexOf(places().indexOf(event.currentTarget)),
          order.length,
          (next) => places()[order[next]].focus(),
        );
      })
      .select("path")
      .attr("d", (point) => SHAPES[point.group % SHAPES.length]);
  }

  const places = () => layer.selectAll("g").nodes();

  function choose(node) {
    current = places().indexOf(node);
    layer
      .selectAll("g")
      .classed("chosen", (_, place) => place === current)
      .attr("tabindex", (_, place) => (place === current ? 0 : -1));
    onPoint(current);
  }

  return { root: svg.node(), show };
}

/** Scales with the same unit on both axes, so that distances are true. */
function scales(points) {
  const [left, right] = extent(points, (point) => point.x);
  const [low, high] = extent(points, (point) => point.y);
  const unit = Math.max(
    (right - left) / (WIDTH - 2 * MARGIN),
    (high - low) / (HEIGHT - 2 * MARGIN),
    1e-9,
  );
  const around = (middle, size) => [middle - (unit * size) / 2, middle + (unit * size) / 2];
  return {
    x: scaleLinear(around((left + right) / 2, WIDTH), [0, WIDTH]),
    y: scaleLinear(around((low + high) / 2, HEIGHT), [HEIGHT, 0]),
  };
}
