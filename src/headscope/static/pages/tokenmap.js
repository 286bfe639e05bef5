/**
 * Where a head's queries, keys, values and outputs of sampled tokens lie; a point opens its input.
 */

import { legendItem } from "../charts/coloring.js";
import { figure } from "../charts/figure.js";
import { scatter } from "../charts/scatter.js";
import { tokenText, visible } from "../charts/tokens.js";
import { ask } from "../explorer/api.js";
import { menu } from "../explorer/controls.js";
import { h } from "../ui/dom.js";
import { plain } from "../ui/format.js";
import { ink, kindColor } from "../explorer/look.js";
import { change } from "../explorer/place.js";

/** @import { HeadRecords, Space } from "../explorer/types.js" */

/**
 * @typedef {{name: string, side: Space["name"], input: number, position: number, token: string,
 *   cluster: number, x: number, y: number}} Placed
 */

const TITLES = {
  together: "Queries and keys together",
  query: "Queries",
  key: "Keys",
  value: "Values",
  output: "Outputs",
};
const AROUND = 6; // tokens on either side of a point that are told

/**
 * @param {string} run
 * @param {HeadRecords} head
 * @param {Record<string, string>} params
 * @param {number} room
 * @returns {HTMLElement | null}
 */
export function mapSection(run, head, params, room) {
  const kinds = kindsOf(head.spaces);
  if (!kinds.length) return null;
  const kind = kinds.find((one) => one === params.map) ?? kinds[0];
  const by =
    params.points === "cluster" || (params.points !== "side" && kind !== "together")
      ? "cluster"
      : "side";
  const points = placed(head, kind);
  const readout = h(
    "p",
    { class: "readout", id: "map-readout" },
    "Point at a token for its context; click or Enter opens its input.",
  );
  const opened = h("div", { class: "opened" });
  const find = (/** @type {string | null} */ name) => points.find((one) => one.name === name);
  const look = (/** @type {string | null} */ name) => {
    const one = find(name);
    if (one) void tell(run, one, readout);
  };
  const width = room - 34;
  const dots = points.map(({ name, x, y, token, side, cluster }) => ({
    name,
    x,
    y,
    said: `${visible(token)}, ${side}, cluster ${cluster + 1}`,
    color: by === "side" ? sideColor(side) : kindColor(cluster),
    shape: side === "key" ? 3 : 0,
  }));
  const drawing = scatter(dots, {
    width,
    height: Math.min(520, Math.max(320, width * 0.5)),
    label: `${TITLES[kind]} of ${head.name}`,
    bare: kind === "together",
    xTitle: "Component 1",
    yTitle: "Component 2",
    opens: "button",
    onLook: look,
    onOpen: (name) => {
      const one = find(name);
      if (one) void open(run, head, one, opened);
    },
  });
  const rows = () => [
    ["space", "token", "input", "position", "x", "y", "cluster"],
    ...points.map(({ side, token, input, position, x, y, cluster }) => [
      ...[side, token, input, position, x, y, cluster + 1],
    ]),
  ];
  const menus = h(
    "div",
    { class: "controls bare" },
    menu({
      id: "map",
      label: "Show",
      value: kind,
      options: kinds.map((one) => ({ value: one, text: TITLES[one] })),
      onChange: (next) => change({ map: next }),
    }),
    menu({
      id: "points",
      label: "Colour",
      value: by,
      options: [
        { value: "side", text: "Side" },
        { value: "cluster", text: "Cluster" },
      ],
      onChange: (next) => change({ points: next }),
    }),
  );
  const means =
    kind === "together"
      ? "Queries and keys that lie close together point the same way; the axes have no meaning " +
        "of their own."
      : "Two principal components of the sampled vectors.";
  const shown = figure({
    title: "Tokens in context",
    drawing,
    rows,
    extra: menus,
    caption: h("div", {}, readout, legend(points, by), h("p", {}, means)),
  });
  shown.append(opened);
  return shown;
}

/** @typedef {keyof typeof TITLES} Kind */

/** @param {Space[]} spaces @returns {Kind[]} */
function kindsOf(spaces) {
  const own = spaces.map((one) => one.name);
  return spaces.some((one) => one.x.length) ? ["together", ...own] : own;
}

/** @param {HeadRecords} head @param {Kind} kind @returns {Placed[]} */
function placed({ samples, spaces }, kind) {
  const chosen = spaces.filter((one) => (kind === "together" ? one.x.length : one.name === kind));
  return chosen.flatMap((space) =>
    space.sample.map((at, i) => ({
      name: `${space.name}-${i}`,
      side: space.name,
      input: samples.input[at],
      position: samples.position[at],
      token: samples.token[at],
      cluster: space.cluster[i],
      x: kind === "together" ? space.x[i] : space.component1[i],
      y: kind === "together" ? space.y[i] : space.component2[i],
    })),
  );
}

/** @param {Space["name"]} side */
function sideColor(side) {
  return side === "key" ? ink().mark : ink().accent;
}

/** @param {Placed[]} points @param {"side" | "cluster"} by */
function legend(points, by) {
  const sides = [...new Set(points.map((one) => one.side))].map((side) =>
    legendItem(by === "side" ? sideColor(side) : ink().faint, side === "key" ? 3 : 0, plain(side)),
  );
  const clusters = [...new Set(points.map((one) => one.cluster))]
    .sort((a, b) => a - b)
    .map((one) => legendItem(kindColor(one), 0, `cluster ${one + 1}`));
  return h(
    "p",
    { class: "legend" },
    ...(by === "side" || sides.length > 1 ? sides : []),
    ...(by === "cluster" ? clusters : []),
  );
}

/**
 * The token between its neighbours.
 * @param {string} run
 * @param {Placed} one
 * @param {HTMLElement} readout
 */
async function tell(run, one, readout) {
  const { position, token } = one;
  const put = (/** @type {string[]} */ before, /** @type {string[]} */ after) =>
    readout.replaceChildren(
      h("span", { class: "faint" }, `${one.side}  `),
      before.join(""),
      h("strong", {}, token),
      after.join(""),
    );
  put([], []);
  readout.dataset.point = one.name;
  const { tokens } = await ask("runs/{run}/inputs/{input}", run, String(one.input));
  if (readout.dataset.point === one.name)
    put(
      tokens.slice(Math.max(0, position - AROUND), position),
      tokens.slice(position + 1, position + 1 + AROUND),
    );
}

/** @param {string} run @param {HeadRecords} head @param {Placed} one @param {HTMLElement} opened */
async function open(run, head, one, opened) {
  const input = await ask("runs/{run}/inputs/{input}", run, String(one.input));
  const examples = head.bands.flatMap((band) => band.examples);
  const known = examples.find((example) => example.input === one.input);
  const text = tokenText(input, known?.rows ?? [], {
    label: `${input.document}, from token ${input.start}`,
    start: one.position,
  });
  const why = known
    ? ""
    : "This input is none of the head’s examples, so its weights are not kept.";
  const from = `  ${input.document}, token ${input.start + one.position}`;
  const token = h("strong", {}, visible(one.token));
  const about = h("p", { class: "example-about" }, token, h("span", { class: "faint" }, from));
  opened.replaceChildren(about, text.node, h("p", { class: "caption" }, why));
  text.ready();
}
