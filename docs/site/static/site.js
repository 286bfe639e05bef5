// What the theme lacks: other versions, frames that follow light and dark, areas that scroll by keyboard, names.

/** Fill the list of versions where the site is published; a copy on a disk has none. */
async function showVersions() {
  const list = document.querySelector("#versions");
  if (!list || !location.protocol.startsWith("http")) return;
  const root = new URL(`${list.dataset.root || "."}/..`, location.href);
  const answer = await fetch(new URL("versions.json", root)).catch(() => null);
  if (!answer || !answer.ok) return;
  for (const name of await answer.json()) {
    const here = location.pathname.includes(`/${name}/`);
    list.append(new Option(name, new URL(`${name}/index.html`, root).href, here, here));
  }
  list.addEventListener("change", () => location.assign(list.value));
  list.parentElement.hidden = false;
}

/** A view in a frame takes the scheme of the page around it. */
function followTheme() {
  const chosen = document.body.dataset.theme;
  const scheme = chosen === "auto" ? "light dark" : chosen || "light dark";
  for (const frame of document.querySelectorAll(".live iframe")) frame.style.colorScheme = scheme;
}

/** What scrolls sideways can be reached and scrolled by keyboard. */
function makeReachable() {
  for (const area of document.querySelectorAll(".table-wrapper, .highlight pre, dl.py > dt")) {
    if (area.scrollWidth > area.clientWidth) area.setAttribute("tabindex", "0");
    else area.removeAttribute("tabindex");
  }
}

/** Names and roles that the theme leaves out and a screen reader needs. */
function nameParts() {
  const parts = {
    ".sidebar-drawer": { "aria-label": "Pages" },
    ".toc-drawer": { "aria-label": "On this page" },
    ".content-icon-container": { role: "region", "aria-label": "Colours and contents" },
    ".mobile-header": { role: "banner" },
    ".caption[role=heading]": { "aria-level": "2" },
  };
  for (const [selector, attributes] of Object.entries(parts)) {
    for (const part of document.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, value);
    }
  }
}

/** The parameters of a long signature are a list, not definitions without terms. */
function listParameters() {
  for (const found of document.querySelectorAll(".sig dl")) {
    const list = document.createElement("ul");
    list.className = "parameters";
    for (const parameter of found.children) {
      const item = document.createElement("li");
      item.append(...parameter.childNodes);
      list.append(item);
    }
    found.replaceWith(list);
  }
}

document.addEventListener("DOMContentLoaded", () => {
  listParameters();
  nameParts();
  showVersions();
  followTheme();
  makeReachable();
  new MutationObserver(followTheme).observe(document.body, { attributeFilter: ["data-theme"] });
  addEventListener("resize", makeReachable);
});
