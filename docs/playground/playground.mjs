// The playground: settings, charts and numbers. The reports are made in worker.mjs.
//
// On the home page it has settings, data-settings, and shows epsilon and one chart alone, by playground.css.

import { chartOfCounts, chartOfErrors } from "./charts.mjs";

const PROTOCOLS = {
  generalized_randomized_response: "Randomised response",
  symmetric_unary_encoding: "Symmetric unary encoding",
  optimized_unary_encoding: "Optimised unary encoding",
  local_hashing: "Local hashing",
  hadamard_response: "Hadamard response",
  subset_selection: "Subset selection",
  projective_geometry_response: "Projective geometry response",
};
const PEOPLE = [1_000, 10_000, 100_000, 1_000_000];
const Z = 1.959963984540054; // of a 95 % interval
const WAIT = 150; // milliseconds without another change of a setting before people answer

const root = document.getElementById("people");
const whole = (number) => Math.round(number).toLocaleString("en");
const percent = (share) => `${(100 * share).toLocaleString("en", { maximumSignificantDigits: 2 })} %`;
const seconds = (time) => `${(time / 1000).toLocaleString("en", { maximumSignificantDigits: 2 })} s`;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** How many people have each of k answers: the shares fall as 1, 1/2, 1/3, ... */
function population(n, k) {
  const shares = Array.from({ length: k }, (_, i) => 1 / (i + 1));
  const sum = shares.reduce((a, b) => a + b);
  const counts = shares.map((share) => Math.floor((n * share) / sum));
  counts[0] += n - counts.reduce((a, b) => a + b);
  return counts;
}

/** Half the width of the widest 95 % interval, as a share of all people: of the first answer, or of one nobody has. */
function margin({ p, q }, people) {
  const n = people.reduce((a, b) => a + b);
  const of = (share) => share * p * (1 - p) + (1 - share) * q * (1 - q);
  return (Z * Math.sqrt(Math.max(of(people[0] / n), of(0)) / n)) / (p - q);
}

/** In how many of 100 or of 10,000 cases another answer leads to a report at least, where one's own always does. */
function otherCases(epsilon) {
  const share = Math.exp(-epsilon);
  const cases = share < 0.1 ? 10_000 : 100;
  return `${whole(Math.floor(share * cases))} times where yours leads to it ${whole(cases)} times`;
}

function field(label, control) {
  return element("label", { class: control.name }, element("span", {}, label), control);
}

function figure(caption, ...children) {
  return element("figure", {}, element("figcaption", {}, ...caption), ...children);
}

function legend(entries) {
  const sign = (kind) => element("span", { class: kind, "aria-hidden": "true" });
  return element("ul", { class: "legend" }, ...entries.map(([kind, text]) => element("li", {}, sign(kind), text)));
}

function choice(name, options, chosen) {
  const select = element("select", { name });
  for (const [value, text] of options) {
    const option = element("option", { value }, text);
    option.selected = value === chosen;
    select.append(option);
  }
  return select;
}

class Playground {
  constructor({ epsilons, protocols }) {
    this.epsilons = epsilons;
    this.protocols = protocols;
    this.id = 0;
    this.build(new URLSearchParams(root.dataset.settings ?? location.search));
    this.worker = new Worker(new URL("worker.mjs", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => this[data.task](data);
    this.worker.onerror = (event) => this.failed({ id: this.id, message: event.message || "the worker did not start" });
    new ResizeObserver(() => this.draw()).observe(this.counts);
    this.collectSoon(0);
  }

  build(asked) {
    const known = (name, values, otherwise) => (values.includes(asked.get(name)) ? asked.get(name) : otherwise);
    const names = Object.keys(this.protocols);
    const ks = Object.keys(this.protocols[names[0]]);
    const people = PEOPLE.map(String);
    const named = Object.entries(PROTOCOLS).filter(([name]) => names.includes(name));
    const epsilon = known("epsilon", this.epsilons.map(String), "1");
    const ofProtocol = choice("protocol", named, known("protocol", names, "optimized_unary_encoding"));
    const ofK = choice("k", ks.map((k) => [k, k]), known("k", ks, "16"));
    const ofPeople = choice("people", PEOPLE.map((n) => [String(n), whole(n)]), known("people", people, "100000"));
    this.slider = element("input", {
      name: "epsilon", type: "range", min: 0, max: this.epsilons.length - 1, step: 1,
      value: this.epsilons.map(String).indexOf(epsilon),
    });
    this.shownEpsilon = element("output");
    const label = element("span", {}, "Privacy: ε = ", this.shownEpsilon);
    const ends = element("span", { class: "ends", "aria-hidden": "true" }, element("span", {}, "more private"),
      element("span", {}, "more exact"));
    this.again = element("button", { type: "submit", class: "md-button" }, "Ask everybody again");
    this.form = element("form", { class: "settings" },
      field("Protocol", ofProtocol), field("Answers", ofK), field("People", ofPeople),
      element("label", { class: "epsilon" }, label, this.slider, ends), this.again);
    this.form.addEventListener("input", () => this.collectSoon(WAIT));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.collectSoon(0);
    });
    this.progressBar = element("progress", { max: 1, value: 0, "aria-label": "reports made" });
    this.summary = element("p", { class: "summary", role: "status" });
    this.counts = element("div", { class: "chart" });
    this.errors = element("div", { class: "chart" });
    this.rows = element("tbody");
    this.person = element("div", { class: "person" });
    root.replaceChildren(
      this.form, this.progressBar, this.summary,
      figure([element("strong", {}, "People by answer")],
        legend([["truth", "who gave it"], ["estimate", "estimate with its 95 % interval"],
          ["missed", "interval that misses"]]),
        this.counts),
      element("details", { class: "numbers" }, element("summary", {}, "The same as numbers"), this.table()),
      element("div", { class: "pair" },
        figure([element("strong", {}, "The price of epsilon"), ": how far an estimate may be off, half of the widest "
          + "95 % interval, in per cent of the people; faint, with the other protocols"], this.errors),
        element("section", { class: "one", "aria-label": "One person" }, this.onePerson(), this.person)),
    );
  }

  table() {
    const titles = ["answer", "people", "estimate", "95 % interval", "error"];
    const head = element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, title)));
    return element("div", { class: "scrolling" }, element("table", {}, element("thead", {}, head), this.rows));
  }

  onePerson() {
    this.answer = element("select", { name: "answer" });
    const ask = element("button", { type: "submit", class: "md-button" }, "Report");
    const form = element("form", {}, field("Be one of them. Your answer:", this.answer), ask);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.report();
    });
    return form;
  }

  get settings() {
    const { protocol, k, people } = Object.fromEntries(new FormData(this.form));
    const of = this.protocols[protocol][k];
    const at = Number(this.slider.value);
    return { protocol, k: Number(k), n: Number(people), at, epsilon: this.epsilons[at], of, ...of[at] };
  }

  /** Shows the settings, and lets people answer once no other change has come for a while. */
  collectSoon(wait) {
    const { protocol, k, n, epsilon } = this.settings;
    this.id += 1;
    root.dataset.state = "running";
    this.shownEpsilon.value = epsilon;
    this.slider.setAttribute("aria-valuetext", `epsilon ${epsilon}`);
    const address = new URLSearchParams({ protocol, k, people: n, epsilon });
    if (!root.dataset.settings) history.replaceState(null, "", `?${address}`);
    if (this.answer.length !== k) {
      this.answer.replaceChildren(...Array.from({ length: k }, (_, i) => element("option", { value: i }, i + 1)));
      this.answer.value = Math.min(2, k - 1);
    }
    this.person.replaceChildren();
    this.drawErrors();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.askEverybody(), wait);
  }

  askEverybody() {
    const settings = this.settings;
    const people = population(settings.n, settings.k);
    this.asked = { settings, people };
    this.progressBar.value = 0;
    this.progressBar.classList.add("running");
    this.worker.postMessage({ task: "collect", id: this.id, specification: settings.specification, people });
    this.report();
  }

  report() {
    const { specification } = this.settings;
    this.worker.postMessage({ task: "one", id: this.id, specification, answer: Number(this.answer.value) });
  }

  progress({ id, share }) {
    if (id === this.id) this.progressBar.value = share;
  }

  collect({ id, counts, standardErrors, n, rejected, reportBytes, messageBytes, making, counting }) {
    if (id !== this.id) return;
    const { settings, people } = this.asked;
    const bars = people.map((truth, i) => {
      const half = Z * standardErrors[i];
      const [estimate, lower, upper] = [counts[i], counts[i] - half, counts[i] + half];
      return { name: String(i + 1), truth, estimate, lower, upper, missed: truth < lower || truth > upper };
    });
    const largest = Math.max(...bars.map(({ truth, estimate }) => Math.abs(estimate - truth)));
    const held = bars.filter(({ missed }) => !missed).length;
    this.result = { bars, settings, largest };
    this.progressBar.classList.remove("running");
    this.summary.replaceChildren(
      element("strong", {}, `The largest error is ${whole(largest)} of ${whole(n)} people (${percent(largest / n)}).`),
      ` ${held} of ${bars.length} intervals contain the truth. `,
      element("span", {}, `Your browser made ${whole(n)} reports of ${reportBytes} `
        + `${reportBytes === 1 ? "byte" : "bytes"} each, ${messageBytes} with the header, in ${seconds(making)}, and `
        + `counted them in ${seconds(counting)}.${rejected ? ` ${whole(rejected)} were rejected.` : ""}`),
    );
    this.rows.replaceChildren(...bars.map((bar) => element("tr", bar.missed ? { class: "missed" } : {},
      element("th", { scope: "row" }, bar.name),
      ...[whole(bar.truth), whole(bar.estimate), `${whole(bar.lower)} to ${whole(bar.upper)}`,
        whole(bar.estimate - bar.truth)].map((text) => element("td", {}, text)))));
    this.draw();
    Object.assign(root.dataset, {
      state: "done", run: id, n, largestError: largest, reportBytes, making, counting,
    });
  }

  one({ id, answer, supported, message, headerBytes, epsilon }) {
    if (id !== this.id) return;
    const bytes = Array.from(message, (byte) => byte.toString(16).padStart(2, "0"));
    const hex = (part, kind) => element("span", { class: kind }, part.join(" "));
    const listed = supported.map((value) => value + 1).join(", ");
    const speaks = supported.length === 0 ? "It speaks for no answer at all, as happens by chance." :
      `It speaks for ${supported.length === 1 ? "the answer" : "the answers"} ${listed}`
      + `${supported.includes(answer) ? "." : ": not for yours, as happens by chance."}`;
    this.person.replaceChildren(
      element("p", {}, "This is all that leaves your device:"),
      element("p", { class: "bytes" }, hex(bytes.slice(0, headerBytes), "header"), " ",
        hex(bytes.slice(headerBytes), "report")),
      element("p", {}, "The first bytes are the same for everybody, ", element("strong", {}, "the last are the report"),
        `. ${speaks} Whoever reads it cannot be sure of your answer: any other one leads to this report at least `
        + `${otherCases(epsilon)}.`),
    );
  }

  failed({ id, message }) {
    if (id !== this.id) return;
    root.dataset.state = "failed";
    this.progressBar.classList.remove("running");
    this.summary.replaceChildren(element("strong", {}, `The playground failed: ${message}.`));
  }

  draw() {
    if (this.result) chartOfCounts(this.counts, this.result.bars);
    this.drawErrors();
  }

  drawErrors() {
    const { n, k, at, protocol } = this.settings;
    const people = population(n, k);
    const curves = Object.entries(this.protocols).map(([name, of]) => ({
      name: PROTOCOLS[name],
      chosen: name === protocol,
      points: of[k].map((one, i) => [this.epsilons[i], margin(one, people)]),
    }));
    chartOfErrors(this.errors, curves, this.epsilons[at], percent);
  }
}

/** Waits until somebody sees the playground: the client is larger than a page. */
const seen = () => new Promise((resolve) => {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    observer.disconnect();
    resolve();
  });
  observer.observe(root);
});

try {
  if (root.dataset.settings) await seen();
  const response = await fetch(new URL("specifications.json", import.meta.url));
  if (!response.ok) throw new Error(`specifications.json: ${response.status}`);
  new Playground(await response.json());
} catch (error) {
  root.dataset.state = "failed";
  root.textContent = `The playground could not start: ${error.message}.`;
}
