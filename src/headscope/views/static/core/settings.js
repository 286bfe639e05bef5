/**
 * Kinds and settings of the views, generated from views/state.py: change them there.
 *
 * @typedef {"head" | "model" | "neuron"} Kind
 *
 * @typedef {object} State
 * @property {string} stack  self, encoder, decoder or cross
 * @property {number} layer  the layer shown; model view: that of the enlarged head
 * @property {number[]} layers  the rows shown
 * @property {number[]} heads  the heads shown
 * @property {number} head  the head that is enlarged or taken apart
 * @property {number[]} window  long inputs: first tile shown of queries and of keys
 * @property {string | null} pinned  q3 is query token 3, k0 is key token 0
 * @property {string} weights  what the lines show
 * @property {string} unit  what the lines join
 * @property {number} mass  the share of each row that is kept, strongest lines first
 * @property {string[]} hide  tokens left out
 * @property {string} pair  which sentence of a pair looks at which
 * @property {string} direction  tokens in columns or in rows
 * @property {string} theme  auto is what the system has
 * @property {string} thumbnail  how a head is drawn small
 * @property {string} order  number, or the score that heads are ordered by
 * @property {boolean} ascending  lowest score first
 * @property {boolean} ranked  order across layers instead of within each
 * @property {boolean} enlarged  one head is shown large
 * @property {string} neurons  how neurons are ordered
 * @property {boolean} expanded  whether the vectors are shown
 */

/** @type {Record<keyof State, {title: string, kinds: string[], choices: Record<string, string>}>} */
export const SETTINGS = {
  stack: {"title": "Attention", "kinds": ["head", "model", "neuron"], "choices": {}},
  layer: {"title": "Layer", "kinds": ["head", "model", "neuron"], "choices": {}},
  layers: {"title": "Layers", "kinds": ["model"], "choices": {}},
  heads: {"title": "Heads", "kinds": ["head", "model"], "choices": {}},
  head: {"title": "Head", "kinds": ["model", "neuron"], "choices": {}},
  window: {"title": "Window", "kinds": ["head", "model"], "choices": {}},
  pinned: {"title": "Pinned", "kinds": ["head", "model", "neuron"], "choices": {}},
  weights: {"title": "Weights", "kinds": ["head", "model"], "choices": {"raw": "Raw", "norm": "Norm", "rollout": "Rollout"}},
  unit: {"title": "Unit", "kinds": ["head", "model"], "choices": {"token": "Tokens", "word": "Words"}},
  mass: {"title": "Mass", "kinds": ["head", "model", "neuron"], "choices": {}},
  hide: {"title": "Hide", "kinds": ["head", "model"], "choices": {"first": "Hide first token", "special": "Hide special tokens"}},
  pair: {"title": "Sentences", "kinds": ["head", "model"], "choices": {"all": "All", "aa": "A → A", "ab": "A → B", "ba": "B → A", "bb": "B → B"}},
  direction: {"title": "Layout", "kinds": ["head"], "choices": {"vertical": "Vertical", "horizontal": "Horizontal"}},
  theme: {"title": "Theme", "kinds": ["head", "model", "neuron"], "choices": {"auto": "Auto", "light": "Light", "dark": "Dark"}},
  thumbnail: {"title": "Thumbnails", "kinds": ["model"], "choices": {"lines": "Lines", "matrix": "Matrix"}},
  order: {"title": "Order by", "kinds": ["model"], "choices": {}},
  ascending: {"title": "Ascending", "kinds": ["model"], "choices": {}},
  ranked: {"title": "Across layers", "kinds": ["model"], "choices": {}},
  enlarged: {"title": "Enlarged", "kinds": ["model"], "choices": {}},
  neurons: {"title": "Neurons", "kinds": ["neuron"], "choices": {"number": "By number", "contribution": "By contribution"}},
  expanded: {"title": "Vectors", "kinds": ["neuron"], "choices": {}},
};
