// Printed by `python -m headscope.explorer.description` from the types in wire.py.

/** The runs and the model. */
export interface Session {
  version: string;
  runs: RunSummary[];
  model: ModelFacts;
  limits: TextLimits;
}

/** One run in the menus; layers and heads are their numbers, not how many there are. */
export interface RunSummary {
  slug: string;
  study: string;
  state: "complete" | "damaged" | "unfinished";
  notes: string[];
  model: string | null;
  corpus: string | null;
  layers: number[];
  heads: number[];
  records: boolean;
  described: boolean;
  closed: Record<string, string>;
}

/** What the pages need to know about the model. */
export interface ModelFacts {
  name: string;
  state: "failed" | "loading" | "none" | "ready";
  reason: string | null;
  layers: number | null;
  heads: number | null;
  causal: boolean | null;
  encoder_decoder: boolean | null;
  max_length: number | null;
  chat: boolean | null;
}

/** What may be asked of the model. */
export interface TextLimits {
  text: number;
  generate: number;
  weights: number;
}

/** One run: its summary, what run.json says, and its measures. */
export interface RunDetail {
  slug: string;
  study: string;
  state: "complete" | "damaged" | "unfinished";
  notes: string[];
  model: string | null;
  corpus: string | null;
  layers: number[];
  heads: number[];
  records: boolean;
  described: boolean;
  closed: Record<string, string>;
  about: Record<string, unknown>;
  measures: MeasureEntry[];
  first: string[];
  left_out: Record<string, string>;
}

/** One measure in the menus. */
export interface MeasureEntry {
  name: string;
  title: string;
  meaning: string;
  unit: string;
  errors: boolean;
  axes: Axis[];
}

/** A dimension of a measure beside layer and head. */
export interface Axis {
  name: string;
  title: string;
  labels: string[];
}

/** One slice of a measure over layers and heads. */
export interface Picture {
  spec: string;
  title: string;
  meaning: string;
  unit: string;
  formula: string;
  reference: string;
  more: string;
  layers: number[];
  heads: number[];
  values: ((number | null)[])[];
  errors: ((number | null)[])[] | null;
  profile: Profile;
  baseline: BaselineValue | null;
  published: Published | null;
}

/** One value for each layer: pooled over heads where the study pooled, else their mean. */
export interface Profile {
  values: (number | null)[];
  errors: (number | null)[] | null;
  pooled: boolean;
}

/** The number that a slice is compared with, and what it is in words. */
export interface BaselineValue {
  value: number;
  means: string;
}

/** What a paper reports for a slice of the measure, in its own model. */
export interface Published {
  says: string;
  source: string;
  value: number | null;
  at: Record<string, string>;
}

/** What every head of a run looks at. */
export interface HeadMap {
  layers: number[];
  heads: number[];
  causal: boolean;
  nulls: string[];
  summary: string;
  roles: RoleCount[];
  cells: HeadCell[];
  feeds: MapFeed[];
}

/** How many heads have a short name. */
export interface RoleCount {
  role: string;
  group: "even" | "marks" | "position" | "repetition" | "sink" | "syntax" | "token" | "unnamed" | "word class";
  heads: number;
}

/** A head on the map of heads. */
export interface HeadCell {
  name: string;
  layer: number;
  head: number;
  role: string;
  group: "even" | "marks" | "position" | "repetition" | "sink" | "syntax" | "token" | "unnamed" | "word class";
  share: number | null;
  explained: number | null;
  sentence: string;
  cost: string | null;
  bars: number[][];
}

/** A head that makes some of the choice of a later one, by what it writes into its keys. */
export interface MapFeed {
  source: string;
  head: string;
  share: number;
}

/** What shows that a head looks where its sentence says. */
export interface HeadPortrait {
  cell: HeadCell;
  nulls: string[];
  causal: boolean;
  parts: ExplainedShare[];
  matrix: number[];
  examples: HeadExample[];
  surprises: Surprise[];
}

/** What one kind of feature explains of a head's attention. */
export interface ExplainedShare {
  group: "even" | "marks" | "position" | "repetition" | "sink" | "syntax" | "token" | "unnamed" | "word class";
  share: number;
  share_of_rest: number | null;
}

/** Some tokens of a text, and the largest weights between them by their places among these. */
export interface HeadExample {
  tokens: string[];
  begins: boolean[];
  after_gap: number[];
  null: number[];
  same: number[];
  arcs: number[][];
}

/** A weight that the portrait does not expect, in its context. */
export interface Surprise {
  tokens: string[];
  begins: boolean[];
  goes_before: boolean;
  goes_on: boolean;
  query: number;
  key: number;
  weight: number;
  expected: number;
}

/** Every head of a run. */
export interface Heads {
  heads: HeadEntry[];
}

/** A head in the search. */
export interface HeadEntry {
  name: string;
  layer: number;
  head: number;
  behaviour: string | null;
  looks: string | null;
  tokens: string[];
}

/** Everything the run knows about one head. */
export interface Card {
  name: string;
  layer: number;
  head: number;
  behaviour: string | null;
  looks: string | null;
  measures: Line[];
  groups: Group[];
  histograms: Histogram[];
  nearest: Neighbours;
  feeds: Feed[];
  cost: string | null;
  exemplars: Exemplar[];
}

/** A slice of a measure at one head; rank 1 is the largest of all heads. */
export interface Line {
  spec: string;
  title: string;
  unit: string;
  value: number | null;
  error: number | null;
  rank: number | null;
  of: number;
  mean: number | null;
  baseline: BaselineValue | null;
}

/** The slices of a measure that has many, at one head. */
export interface Group {
  name: string;
  title: string;
  axis: string;
  enough: number;
  bars: LabelBar[];
}

/** One label of a measure that has many, at one head that has a value there. */
export interface LabelBar {
  label: string;
  value: number;
  error: number | null;
  rank: number;
  of: number;
  baseline: BaselineValue | null;
  rare: boolean;
}

/** How something of one head is distributed. */
export interface Histogram {
  name: string;
  title: string;
  meaning: string;
  axis: string;
  bins: Bin[];
}

/** A bar of a histogram: from `low`, which is included, to below `high`. */
export interface Bin {
  low: number;
  high: number;
  value: number;
  error: number | null;
}

/** The nearest heads, and what the distance is. */
export interface Neighbours {
  basis: string;
  heads: Neighbour[];
}

/** Another head and how far it is. */
export interface Neighbour {
  name: string;
  distance: number;
}

/** An earlier head that makes some of a head's choice, by its query or by the keys. */
export interface Feed {
  name: string;
  side: "key" | "query";
  share: number;
  margin: number | null;
}

/** A stored sentence: `labels` are its tokens to be shown, `spaces` join `pieces` to a text. */
export interface Exemplar {
  rank: number;
  weight: number;
  query: number;
  key: number;
  text: string;
  tokens: string[];
  labels: string[];
  pieces: string[];
  spaces: boolean[];
  rtl: boolean;
}

/** What a run keeps of one head besides numbers. */
export interface HeadRecords {
  name: string;
  tops: TopTokens[];
  bands: Band[];
  samples: Samples;
  spaces: Space[];
  raises: WrittenToken[];
  lowers: WrittenToken[];
  no_writes: string | null;
}

/** The first tokens of one side in one order. */
export interface TopTokens {
  side: "key" | "query";
  by: "lift" | "mass";
  tokens: TokenRow[];
}

/** A token that a head looks from or at; lift: its share beside what even attention gives. */
export interface TokenRow {
  token: string;
  share: number;
  lift: number;
  count: number;
}

/** Examples whose largest weight lies in one part of all inputs, low to high; last the top. */
export interface Band {
  name: string;
  examples: Example[];
}

/** An input with the largest weights of its rows. */
export interface Example {
  peak: number;
  input: number;
  rows: number[][];
}

/** Tokens in context, each list in one order. */
export interface Samples {
  input: number[];
  position: number[];
  token: string[];
}

/** Where one of the head's spaces puts sampled tokens, each list in one order. */
export interface Space {
  name: "key" | "output" | "query" | "value";
  sample: number[];
  component1: number[];
  component2: number[];
  x: number[];
  y: number[];
  cluster: number[];
}

/** A token whose logit the head's output raises or lowers. */
export interface WrittenToken {
  token: string;
  logit: number;
}

/** The tokens of an input, to be shown, and where they are from. */
export interface InputText {
  input: number;
  document: string;
  start: number;
  tokens: string[];
  rtl: boolean;
  pieces: boolean;
}

/** Heads by how alike they are. */
export interface Clusters {
  heads: MappedHead[];
  behaviours: Behaviour[];
  stress: number | null;
}

/** A head's place among those that are alike. */
export interface MappedHead {
  name: string;
  layer: number;
  x: number | null;
  y: number | null;
  behaviour: string | null;
  looks: string | null;
}

/** A name that a study gives to heads: its group, and its number within the group. */
export interface Behaviour {
  name: string;
  group: "even" | "marks" | "position" | "repetition" | "sink" | "syntax" | "token" | "unnamed" | "word class";
  number: number;
}

/** The tables, judged claims and chosen heads that are stored with a run. */
export interface Said {
  tally: string;
  tables: StoredTable[];
  findings: JudgedClaim[];
  choices: Choice[];
}

/** A table as the run holds it. */
export interface StoredTable {
  name: string;
  title: string;
  caption: string;
  columns: TableColumn[];
  rows: ((string | number | boolean | null)[])[];
}

/** What a column of a table holds; a margin of error is of the column that it stands behind. */
export interface TableColumn {
  name: string;
  title: string;
  kind: "by layer" | "head" | "head mean" | "high" | "low" | "margin" | "note" | "number" | "published" | "text" | "value";
  of: string;
}

/** A claim of the paper compared with the result by a stated rule. */
export interface JudgedClaim {
  claim: string;
  published: string;
  measured: string;
  holds: "for comparison" | "no" | "not measured" | "unclear" | "untrained too" | "yes";
  rule: string;
  value: number | null;
  low: number | null;
  high: number | null;
  threshold: number | null;
  untrained: number | null;
}

/** A head worth looking at, for which table, and why; its exemplars are pairs of one kind. */
export interface Choice {
  table: string;
  layer: number;
  head: number;
  why: string;
  kind: string;
}

/** How two runs relate, matched heads, and the largest differences of heads and of layers. */
export interface Comparison {
  confidence: number;
  by: ("auto" | "depth" | "index" | "matched")[];
  notes: string[];
  measures: string[];
  clear: number;
  intervals: number;
  rows: DifferenceRow[];
  layers: DifferenceRow[];
  matches: MatchedHeads[];
  alone: string[];
}

/** One slice at a head, a pair of heads or a pair of layers in two runs. */
export interface DifferenceRow {
  measure: string;
  title: string;
  spec: string;
  first_at: string;
  second_at: string;
  clear: boolean;
  first: number | null;
  second: number | null;
  difference: number | null;
  low: number | null;
  high: number | null;
  q: number | null;
  effect: number | null;
}

/** Two heads that do the same; chance is the share of strangers' matches as near. */
export interface MatchedHeads {
  first: string;
  second: string;
  distance: number;
  chance: number;
  good: boolean;
}

/** One slice of a measure in two runs, head with head. */
export interface Difference {
  spec: string;
  title: string;
  confidence: number;
  layers: number[];
  heads: number[];
  first: ((number | null)[])[];
  second: ((number | null)[])[];
  difference: ((number | null)[])[];
  low: ((number | null)[])[];
  high: ((number | null)[])[];
  effect: ((number | null)[])[];
}

/** A text to trace and how it is to be shown. */
export interface TextRequest {
  text: string;
  pair?: string | null;
  target?: string | null;
  generate?: number;
  kind?: "head" | "model" | "neuron";
  layer?: number | null;
  head?: number | null;
  blocks?: number[] | null;
  chat?: boolean;
  why?: number[] | null;
  without?: string[];
  replacement?: "mean" | "zero";
  difference?: boolean;
}

/** What is sent, by its address below /api/. */
export interface Answers {
  session: Session;
  "runs/{run}": RunDetail;
  "runs/{run}/measures/{spec}": Picture;
  "runs/{run}/map": HeadMap;
  "runs/{run}/portraits/{head}": HeadPortrait;
  "runs/{run}/heads": Heads;
  "runs/{run}/heads/{head}": Card;
  "runs/{run}/records/{head}": HeadRecords;
  "runs/{run}/inputs/{input}": InputText;
  "runs/{run}/clusters": Clusters;
  "runs/{run}/statements": Said;
  "compare/{a}/{b}": Comparison;
  "compare/{a}/{b}/{spec}": Difference;
}
