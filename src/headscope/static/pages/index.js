/** The pages by their names in addresses. */

import { clustersPage } from "./clusters.js";
import { comparePage } from "./compare.js";
import { embedPage } from "./embed.js";
import { finderPage } from "./finder.js";
import { findingsPage } from "./findings.js";
import { headPage } from "./head.js";
import { mapPage } from "./map.js";
import { overviewPage } from "./overview.js";
import { textPage } from "./text.js";

/** @import { Page } from "../explorer/main.js" */

/** @type {Record<string, Page>} */
export const PAGES = {
  map: mapPage,
  overview: overviewPage,
  finder: finderPage,
  head: headPage,
  embed: embedPage,
  clusters: clustersPage,
  findings: findingsPage,
  text: textPage,
  compare: comparePage,
};
