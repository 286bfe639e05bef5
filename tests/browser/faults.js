/* What somebody who cannot see or point would stumble over, on the page as it is drawn now:
   controls without a name, ids that are there twice, missing landmarks, text without contrast. */
() => {
  const faults = [];
  const seen = new Set();
  for (const one of document.querySelectorAll("[id]")) {
    if (seen.has(one.id)) faults.push(`two elements have the id ${one.id}`);
    seen.add(one.id);
  }
  const nameOf = (one) => {
    const by = one.getAttribute("aria-labelledby");
    const label = one.id && document.querySelector(`label[for="${CSS.escape(one.id)}"]`);
    return (
      one.getAttribute("aria-label") ||
      (by && document.getElementById(by)?.textContent) ||
      label?.textContent ||
      one.closest("label")?.textContent ||
      one.title ||
      one.textContent ||
      ""
    ).trim();
  };
  const controls =
    "a[href], button, input, select, textarea, [tabindex], [role=grid], [role=img], [role=link]";
  for (const one of document.querySelectorAll(controls)) {
    if (one.id === "content" || one.closest("[hidden]")) continue;
    if (!nameOf(one)) faults.push(`no name: ${one.outerHTML.slice(0, 120)}`);
  }
  for (const image of document.querySelectorAll("img:not([alt])"))
    faults.push(`no alt: ${image.src}`);
  for (const need of ["header", "nav", "main", "h1"]) {
    if (document.querySelectorAll(need).length < 1) faults.push(`no ${need}`);
  }
  if (!document.documentElement.lang) faults.push("no language");
  // Whatever a colour is written in, a painted pixel has red, green, blue and opacity.
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const parse = (text) => {
    if (!known.has(text)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = "transparent";
      pen.fillStyle = text;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) =>
      v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const groundOf = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0.5) return color;
    }
    return [255, 255, 255];
  };
  const inkOf = (one) =>
    parse(one instanceof SVGElement ? getComputedStyle(one).fill : getComputedStyle(one).color);
  const hex = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const paintOf = (one) =>
    one.dataset.ground ? hex(one.dataset.ground) : groundOf(one.ownerSVGElement ?? one);
  for (const one of document.querySelectorAll("main *, header *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = one.getBoundingClientRect();
    if (
      !own ||
      box.width < 2 ||
      ["TITLE", "title", "OPTION"].includes(one.tagName) ||
      one.closest(".hidden, :disabled, .hs-root")
    )
      continue;
    const [a, b] = [light(inkOf(one)), light(paintOf(one))].sort((x, y) => x - y);
    const ratio = (b + 0.05) / (a + 0.05);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${one.outerHTML.slice(0, 120)}`);
  }
  return faults;
};
