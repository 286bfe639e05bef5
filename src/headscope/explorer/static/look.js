/** Light and dark: the chosen theme, its inks, and the colour scales of the figures. */

const KEY = "headscope-theme";
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

/** @typedef {"auto" | "light" | "dark"} Choice */

const INKS = {
  light: {
    ink: "#1c2128", faint: "#5c6570", paper: "#ffffff", rule: "#d5dae0", grid: "#e9edf1", accent: "#1f6feb", mark: "#c2410c",
    bar: "#5b8fd0", none: "#eef1f4",
  },
  dark: {
    ink: "#e4e8ee", faint: "#98a2ae", paper: "#161b21", rule: "#333b45", grid: "#252c34", accent: "#5aa5ff", mark: "#ffa043",
    bar: "#4a80bf", none: "#20262d",
  },
};

const SEQUENTIAL = {
  light: ["#f1f5fa", "#cfe0f1", "#9cc3e6", "#5b9bd5", "#2a6cb3", "#124583", "#082a57"],
  dark: ["#1c232b", "#1d3650", "#215585", "#2f7cc0", "#62a8e6", "#a5d0f7", "#e6f3ff"],
};
const DIVERGING = {
  light: ["#7f3300", "#c9650b", "#f0a75e", "#fbe3c8", "#f5f7f9", "#d3e4f7", "#7db3ea", "#2569bd", "#0a2f66"],
  dark: ["#ffd3a1", "#ffa043", "#b96a1c", "#5c3a1a", "#20262d", "#1b3d61", "#2a6db5", "#68aef5", "#cfe6ff"],
};

// Okabe and Ito's colours, darkened or lightened to stand out from the paper.
const KINDS = {
  light: ["#0072b2", "#d55e00", "#007a5a", "#a8528a", "#8a6d00", "#3d7fa6", "#6b4fbb", "#5c6570"],
  dark: ["#56b4e9", "#ff8c42", "#2fc79a", "#e39acb", "#e6c229", "#8fd0f0", "#b39ddb", "#98a2ae"],
};

/** @returns {Choice} */
export function chosenTheme() {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "auto";
}

/** @param {Choice} choice */
export function chooseTheme(choice) {
  localStorage.setItem(KEY, choice);
  applyTheme();
}

/** @returns {"light" | "dark"} */
export function theme() {
  const choice = chosenTheme();
  return choice === "auto" ? (prefersDark.matches ? "dark" : "light") : choice;
}

export function applyTheme() {
  document.documentElement.dataset.theme = theme();
}

/** @param {() => void} act */
export function onSystemTheme(act) {
  prefersDark.addEventListener("change", act);
}

/** The inks of the theme in force. */
export function ink() {
  return INKS[theme()];
}

/** @param {number} share 0 to 1 @returns {string} */
export function sequential(share) {
  return between(SEQUENTIAL[theme()], share);
}

/** @param {number} share -1 to 1 @returns {string} */
export function diverging(share) {
  return between(DIVERGING[theme()], (share + 1) / 2);
}

/** @param {number} index @returns {string} */
export function kindColor(index) {
  const colors = KINDS[theme()];
  return colors[index % colors.length];
}

/** @param {string} color #rrggbb @returns {string} an ink that can be read on it */
export function inkOn(color) {
  return contrast(color, "#ffffff") >= contrast(color, "#000000") ? "#ffffff" : "#000000"; // one of them always reaches 4.5
}

/** @param {string[]} stops @param {number} share @returns {string} */
function between(stops, share) {
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  const from = channels(stops[low]);
  const to = channels(stops[low + 1]);
  return `#${from.map((value, i) => hex(value + (to[i] - value) * (at - low))).join("")}`;
}

/** @param {string} color @returns {number[]} */
function channels(color) {
  return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
}

/** @param {number} value @returns {string} */
function hex(value) {
  return Math.round(value).toString(16).padStart(2, "0");
}

/** @param {string} a @param {string} b @returns {number} WCAG contrast ratio */
export function contrast(a, b) {
  const [dark, bright] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (bright + 0.05) / (dark + 0.05);
}

/** @param {string} color @returns {number} */
function luminance(color) {
  const [r, g, b] = channels(color).map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
