/** The view of every kind, generated from views/kinds.py: declare a new kind there. */

import { headView } from "./head/view.js";
import { modelView } from "./model/view.js";
import { neuronView } from "./neuron/view.js";

export const VIEWS = { head: headView, model: modelView, neuron: neuronView };
