/**
 * Kinds and settings of the views, generated from views/kinds.py: change them there.
 *
 * @typedef {"head" | "model" | "neuron"} Kind
 *
 * @typedef {object} State
 * @property {string} stack  self, encoder, decoder or cross
 * @property {number} layer  the layer shown; model view: that of the enlarged head
 * @property {number[]} layers  model view: the rows shown; summary: the layers put together
 * @property {number[]} heads  the heads shown
 * @property {number} head  the head that is enlarged or taken apart
 * @property {number[]} window  long inputs: first tile shown of queries and of keys
 * @property {string | null} pinned  q3 is query token 3, k0 is key token 0, q3-7+9 are several
 * @property {string} summary  each head by itself, or the chosen heads and layers as one picture
 * @property {string} weights  raw: as the model computed them; norm: times the size of what is passed on; rollout: followed through all layers up to this one
 * @property {string} unit  what the lines join
 * @property {string[]} spans  parts of the text by name: 12-45 Document 1
 * @property {string | null} attending  only what this span looks at
 * @property {string | null} attended  only what looks at this span
 * @property {number} mass  of every attending token, the strongest lines that together hold this share
 * @property {string[]} hide  tokens left out
 * @property {string} pair  which sentence of a pair looks at which
 * @property {string} theme  auto is what the system has
 * @property {string} layout  lines between two columns of tokens, or a text that is shaded by the attention it gets
 * @property {string} thumbnail  how a head is drawn small
 * @property {string} order  number, or the score that heads are ordered by
 * @property {boolean} ascending  lowest score first
 * @property {boolean} ranked  order across layers instead of within each
 * @property {boolean} enlarged  one head is shown large
 * @property {string} sort  how the attended tokens are ordered
 * @property {string} neurons  how neurons are ordered
 */

/** @type {Record<keyof State, {title: string, meaning: string, kinds: string[], choices: Record<string, string>}>} */
export const SETTINGS = {
  stack: {"title": "Attention", "meaning": "self, encoder, decoder or cross", "kinds": ["head", "model", "neuron"], "choices": {}},
  layer: {"title": "Layer", "meaning": "the layer shown; model view: that of the enlarged head", "kinds": ["head", "model", "neuron"], "choices": {}},
  layers: {"title": "Layers", "meaning": "model view: the rows shown; summary: the layers put together", "kinds": ["head", "model"], "choices": {}},
  heads: {"title": "Heads", "meaning": "the heads shown", "kinds": ["head", "model"], "choices": {}},
  head: {"title": "Head", "meaning": "the head that is enlarged or taken apart", "kinds": ["model", "neuron"], "choices": {}},
  window: {"title": "Window", "meaning": "long inputs: first tile shown of queries and of keys", "kinds": ["head", "model"], "choices": {}},
  pinned: {"title": "Pinned", "meaning": "q3 is query token 3, k0 is key token 0, q3-7+9 are several", "kinds": ["head", "model", "neuron"], "choices": {}},
  summary: {"title": "Show", "meaning": "each head by itself, or the chosen heads and layers as one picture", "kinds": ["head", "model"], "choices": {"each": "Each head", "mean": "Mean", "max": "Maximum"}},
  weights: {"title": "Weights", "meaning": "raw: as the model computed them; norm: times the size of what is passed on; rollout: followed through all layers up to this one", "kinds": ["head", "model"], "choices": {"raw": "Raw", "norm": "Norm", "rollout": "Rollout"}},
  unit: {"title": "Between", "meaning": "what the lines join", "kinds": ["head", "model"], "choices": {"token": "Tokens", "word": "Words", "span": "Spans"}},
  spans: {"title": "Spans", "meaning": "parts of the text by name: 12-45 Document 1", "kinds": ["head", "model"], "choices": {}},
  attending: {"title": "From", "meaning": "only what this span looks at", "kinds": ["head", "model"], "choices": {}},
  attended: {"title": "To", "meaning": "only what looks at this span", "kinds": ["head", "model"], "choices": {}},
  mass: {"title": "Strongest lines", "meaning": "of every attending token, the strongest lines that together hold this share", "kinds": ["head", "model", "neuron"], "choices": {}},
  hide: {"title": "Hide", "meaning": "tokens left out", "kinds": ["head", "model"], "choices": {"first": "Hide first token", "special": "Hide special tokens"}},
  pair: {"title": "Sentences", "meaning": "which sentence of a pair looks at which", "kinds": ["head", "model"], "choices": {"all": "All", "aa": "A → A", "ab": "A → B", "ba": "B → A", "bb": "B → B"}},
  theme: {"title": "Theme", "meaning": "auto is what the system has", "kinds": ["head", "model", "neuron"], "choices": {"auto": "Auto", "light": "Light", "dark": "Dark"}},
  layout: {"title": "Layout", "meaning": "lines between two columns of tokens, or a text that is shaded by the attention it gets", "kinds": ["head"], "choices": {"lines": "Lines", "text": "Text"}},
  thumbnail: {"title": "Draw heads as", "meaning": "how a head is drawn small", "kinds": ["model"], "choices": {"matrix": "Matrix", "lines": "Lines"}},
  order: {"title": "Order by", "meaning": "number, or the score that heads are ordered by", "kinds": ["model"], "choices": {}},
  ascending: {"title": "Ascending", "meaning": "lowest score first", "kinds": ["model"], "choices": {}},
  ranked: {"title": "Across layers", "meaning": "order across layers instead of within each", "kinds": ["model"], "choices": {}},
  enlarged: {"title": "Enlarged", "meaning": "one head is shown large", "kinds": ["model"], "choices": {}},
  sort: {"title": "Tokens", "meaning": "how the attended tokens are ordered", "kinds": ["neuron"], "choices": {"weight": "By weight", "text": "As in the text"}},
  neurons: {"title": "Neurons", "meaning": "how neurons are ordered", "kinds": ["neuron"], "choices": {"number": "By number", "contribution": "By contribution"}},
};
