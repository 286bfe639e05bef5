/** The controls of the conditions that a head must meet. */

import { button, measureMenus, menu } from "../explorer/controls.js";
import { h } from "../ui/dom.js";
import { finite } from "../ui/format.js";
import { change } from "../explorer/place.js";
import { writeFilters } from "./question.js";

/**
 * @import { Picture } from "../explorer/types.js"
 * @import { Found } from "./finder.js"
 * @import { Filter } from "./question.js"
 */

/**
 * One more condition: the upper half of the measure that goes up.
 * @param {Found} found
 * @returns {Record<string, string>}
 */
export function addFilter({ asked, pictures }) {
  return {
    where: writeFilters([
      ...asked.filters,
      { spec: asked.y, sign: ">=", value: middle(pictures.get(asked.y)) },
    ]),
  };
}

/** @param {Picture | undefined} picture @returns {number} */
function middle(picture) {
  const values = finite((picture?.values ?? []).flat()).sort((a, b) => a - b);
  return Number((values[Math.floor(values.length / 2)] ?? 0).toPrecision(3));
}

/**
 * @param {Found} found
 * @param {() => void} draw  when a number has changed
 * @returns {HTMLElement[]}
 */
export function filterRows({ run, asked, pictures }, draw) {
  const put = (
    /** @type {number} */ place,
    /** @type {Filter | null} */ next,
    /** @type {{replace?: boolean, quiet?: boolean}} */ how = {},
  ) => {
    const all = asked.filters.flatMap((one, i) => (i === place ? (next ?? []) : one));
    if (how.quiet) asked.filters = all;
    change({ where: writeFilters(all) }, how);
  };
  return asked.filters.map((filter, i) => {
    const current = () => asked.filters[i];
    const values = finite((pictures.get(filter.spec)?.values ?? []).flat());
    const number = h("input", {
      id: `where-${i}-value`,
      type: "number",
      step: "any",
      value: filter.value,
      "aria-label": `Condition ${i + 1}: number`,
      title: values.length
        ? `from ${Math.min(...values).toPrecision(3)} to ${Math.max(...values).toPrecision(3)}`
        : null,
    });
    number.addEventListener("input", () => {
      if (!Number.isFinite(number.valueAsNumber)) return;
      put(i, { ...current(), value: number.valueAsNumber }, { replace: true, quiet: true });
      draw();
    });
    const signs = [
      { value: ">=", text: "at least" },
      { value: "<=", text: "at most" },
    ];
    return h(
      "div",
      { class: "controls condition", role: "group", "aria-label": `Condition ${i + 1}` },
      measureMenus(`where-${i}`, "Keep", run.measures, filter.spec, (spec) =>
        put(i, {
          ...current(),
          spec,
          value: filter.spec.split("~")[0] === spec.split("~")[0] ? current().value : 0,
        }),
      ),
      menu({
        id: `where-${i}-sign`,
        label: "is",
        options: signs,
        value: filter.sign,
        onChange: (sign) => put(i, { ...current(), sign: /** @type {Filter["sign"]} */ (sign) }),
      }),
      number,
      button("Remove", {
        class: "button small",
        id: `where-${i}-drop`,
        "aria-label": `Remove condition ${i + 1}`,
        click: () => put(i, null),
      }),
    );
  });
}
