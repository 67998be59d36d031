// Answers for the client for the web: a line in, a line out. In browsers, tests import `answer`; in node this is a
// program.

import { Accumulator, Client, DpnoiseError, Memo } from "../dist/dpnoise.mjs";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") || "-";
const bytes = (word) => Uint8Array.from(word === "-" ? [] : word.match(/../g), (pair) => parseInt(pair, 16));
const text = (word) => utf8.decode(bytes(word));
const number = (word) => new DataView(bytes(word).buffer).getFloat64(0, true);

function doubles(numbers) {
  const view = new DataView(new ArrayBuffer(8 * numbers.length));
  numbers.forEach((value, i) => view.setFloat64(8 * i, value, true));
  return hex(new Uint8Array(view.buffer));
}

/** A generator that plays these bytes once. */
function played(script) {
  let position = 0;
  return (out) => {
    if (position + out.length > script.length) throw new Error("the script has no bytes left");
    out.set(script.subarray(position, (position += out.length)));
  };
}

const VALUES = {
  integers: (words) => words.map(BigInt),
  numbers: (words) => Float64Array.from(words, number),
  texts: (words) => words.map(text),
};

async function accumulator(specification, messages) {
  const [all, attribute] = specification.split("@");
  const counters = await Accumulator.fromSpecification(bytes(all));
  counters.addMessages(messages.map(bytes));
  return attribute === undefined ? counters : counters.attribute(text(attribute));
}

const UNARY = '{"epsilon":1.0,"k":15,"p":1024,"planes":11,"protocol":"optimized_unary_encoding","q":551,"version":1}';

const COMMANDS = {
  async perturb(form, kind, specification, random, memo, question, ...words) {
    const options = {};
    if (random !== "-") options.random = played(bytes(random));
    if (memo !== "-") Object.assign(options, { memo: await Memo.fromBytes(bytes(memo)), question: text(question) });
    const client = await Client.fromSpecification(bytes(specification), options);
    const values = VALUES[kind](words);
    options.memo?.free();
    const one = { reports: "report", messages: "message" }[form];
    const made = words.length === 1 && kind !== "numbers" ? client[one](values[0]) : client[form](values);
    client.free();
    return hex(made);
  },

  async about(specification, question, period) {
    const client = await Client.fromSpecification(bytes(specification));
    const other = client.about({ question: text(question), period: text(period) });
    return `${hex(new TextEncoder().encode(other.specification))} ${hex(other.bareDigest)}`;
  },

  async merge(specification, other, ...messages) {
    const counters = await accumulator(specification, messages);
    counters.merge(other === "-" ? counters : await accumulator(other, []));
    return hex(counters.toBytes());
  },

  async collect(specification, ...messages) {
    return hex((await accumulator(specification, messages)).toBytes());
  },

  async estimate(specification, ...messages) {
    const { counts, standardErrors } = (await accumulator(specification, messages)).estimate();
    return doubles([...counts, ...standardErrors]);
  },

  async mean(specification, ...messages) {
    const { mean, standardError } = (await accumulator(specification, messages)).estimateMean();
    return doubles([mean, standardError]);
  },

  async density(specification, smoothing, ...messages) {
    const counters = await accumulator(specification, messages);
    return doubles(counters.estimateDensity({ smoothing: smoothing === "1" }).probabilities);
  },

  async ranges(specification, first, last, q, ...messages) {
    const counters = await accumulator(specification, messages);
    const { counts, standardErrors } = counters.estimateRanges([[Number(first), Number(last)]]);
    return `${doubles([...counts, ...standardErrors])} ${counters.estimateQuantiles([number(q)])[0]}`;
  },

  async candidates(specification, n, ...words) {
    const counters = await accumulator(specification, words.slice(Number(n)));
    const { counts, standardErrors } = counters.estimateCandidates(words.slice(0, Number(n)).map(text));
    return doubles([...counts, ...standardErrors]);
  },

  async prefixes(specification, level, ...messages) {
    const found = (await accumulator(specification, messages)).estimatePrefixes(number(level));
    const { values, counts, standardErrors, complete } = found;
    return [Number(complete), doubles([...counts, ...standardErrors]), ...values].join(" ");
  },

  async memo(word, ...asked) {
    const memo = await Memo.fromBytes(bytes(word));
    for (let i = 0; i < asked.length; i += 2) {
      (await Client.fromSpecification(bytes(asked[i]), { memo, question: text(asked[i + 1]) })).free();
    }
    return hex(memo.toBytes());
  },

  async newmemo() {
    const [one, other] = await Promise.all([Memo.create(), Memo.create()]);
    const again = await Memo.fromBytes(one.toBytes());
    if (hex(again.toBytes()) !== hex(one.toBytes())) throw new Error("a memo is not what was read");
    return hex(one.toBytes()) === hex(other.toBytes()) ? "same" : "different";
  },

  async facts(specification, limit) {
    const client = await Client.fromSpecification(bytes(specification), { limit: Number(limit) });
    const { takes, keepsMemo, k, reportBytes, counterBytes, epsilon, delta, header } = client;
    const guarantee = [epsilon, delta].map((parameter) => doubles([parameter]));
    return [takes, Number(keepsMemo), k, reportBytes, counterBytes, ...guarantee, hex(header)].join(" ");
  },

  async freed(what) {
    const make = {
      protocol: async () => [await Client.fromSpecification(UNARY), (client) => client.message(3)],
      memo: async () => [await Memo.create(), (memo) => memo.toBytes()],
      accumulator: async () => [await Accumulator.fromSpecification(UNARY), (counters) => counters.toBytes()],
    }[what];
    if (!make) throw new DpnoiseError("parameter", "this client makes no noise");
    const [object, use] = await make();
    object.free();
    object.free();
    return hex(use(object));
  },

  async time(n, specification) {
    const client = await Client.fromSpecification(bytes(specification));
    const value = client.takes === "texts" ? "a" : 0;
    const start = performance.now();
    for (let i = 0; i < n; i++) client.message(value);
    return Math.round(((performance.now() - start) * 1e6) / n);
  },
};

/** Answers a line of the protocol that the runners of all languages have. */
export async function answer(line) {
  const [command, ...fields] = line.split(" ");
  try {
    if (!Object.hasOwn(COMMANDS, command)) throw new DpnoiseError("parameter", "this client makes no noise");
    return `ok ${await COMMANDS[command](...fields)}`;
  } catch (error) {
    const status = error instanceof DpnoiseError ? error.status : "internal";
    return `error ${status} ${error.message.replaceAll("\n", " ")}`;
  }
}

if (typeof process === "object" && import.meta.url === String(new URL(`file://${process.argv[1]}`))) {
  const { createInterface } = await import("node:readline");
  for await (const line of createInterface({ input: process.stdin })) console.log(await answer(line));
}
