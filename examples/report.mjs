// A client of local protocols for node 20. All that it does is described in docs/reference/wire_format.md.
//
//   node report.mjs ANNOUNCEMENT < VALUES
//
// ANNOUNCEMENT is a file with a specification, or with a document that has labels, too. VALUES has a JSON value on each
// line: a number, or a label. Each line of the output is a message in hexadecimal, for a collector's add_messages.
//
// All draws are exact, and from node's secure generator. Their time is not constant: JavaScript promises nothing about
// time, and the noise of laplace_mean takes longer when it is larger. No error shows a value.

import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** The number of each protocol in messages, and the fields of its specification beside those of all. */
const PROTOCOLS = {
  randomized_response: [1, "p planes q"],
  symmetric_unary_encoding: [2, "p planes q"],
  optimized_unary_encoding: [3, "p planes q"],
  unary_encoding: [4, "p planes q"],
  generalized_randomized_response: [5, "keep planes"],
  local_hashing: [6, "g keep planes prime"],
  hadamard_response: [7, "keep order planes"],
  laplace_mean: [15, "bound unit"],
  threshold_histogram_encoding: [17, "p planes q"],
  summation_histogram_encoding: [18, "bound unit"],
};

/** The most bytes of the texts that say what reports are about, which a specification may leave out. */
const LONGEST = { labels: 32, period: 63, question: 255 };

/** Characters that are not seen, or change how others are shown. */
const HIDDEN =
  /[\0-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;

/** Exact draws of whole numbers, which are BigInts. */
export class Draws {
  /** @param {(count: number) => Uint8Array} bytes a source of random bytes; another one is for tests only */
  constructor(bytes = randomBytes) {
    this.bytes = bytes;
  }

  /** Any number from 0n to n - 1n. */
  uniform(n) {
    const bits = n > 1n ? (n - 1n).toString(2).length : 0;
    for (;;) {
      const number = BigInt.asUintN(bits, fromBytes(this.bytes(Math.ceil(bits / 8))));
      if (number < n) return number;
    }
  }

  /** True with probability numerator / 2^planes. */
  coin(numerator, planes) {
    return this.uniform(1n << planes) < numerator;
  }

  /** Discrete Laplace noise of scale 2 unit / epsilon. */
  noise(epsilon, unit) {
    const s = BigInt(epsilon * 2 ** 72);
    const t = unit << 73n;
    const common = gcd(s, t);
    return this.discreteLaplace(s / common, t / common);
  }

  /** y with probability proportional to exp(-|y| s / t). */
  discreteLaplace(s, t) {
    for (;;) {
      const u = this.uniform(t);
      if (!this.expCoin(u, t)) continue;
      let v = 0n;
      while (this.expCoin(t, t)) v += 1n;
      const size = (u + t * v) / s;
      const negative = this.uniform(2n) === 1n;
      if (size > 0n || !negative) return negative ? -size : size;
    }
  }

  /** True with probability exp(-u / t). */
  expCoin(u, t) {
    let k = 1n;
    while (this.uniform(t) < u && this.uniform(k) === 0n) k += 1n;
    return k % 2n === 1n;
  }
}

/** What a device does with a specification. */
export class Client {
  /**
   * @param {Uint8Array | string} specification the bytes that were announced
   * @param {object} [options]
   * @param {(string | number)[]} [options.domain] the labels of the values, or the bounds of a mean
   * @param {number} [options.maxEpsilon] the largest epsilon that the application allows
   * @param {Draws} [options.draws] for tests only
   */
  constructor(specification, options) {
    // Only what the object has itself: another script may have added `draws` to Object.prototype.
    const { domain, maxEpsilon = Infinity, draws = new Draws() } = { __proto__: null, ...options };
    const text = Buffer.from(specification).toString("latin1").replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, "");
    const spec = fieldsOf(text);
    if (spec.version !== 1n || !Object.hasOwn(PROTOCOLS, spec.protocol)) {
      throw new Error(`this client knows version 1 of ${Object.keys(PROTOCOLS).join(", ")}`);
    }
    const [code, own] = PROTOCOLS[spec.protocol];
    const about = Object.keys(LONGEST).filter((name) => name in spec);
    const known = [...own.split(" "), ...about, "epsilon", "k", "protocol", "version"].sort();
    if (Object.keys(spec).join() !== known.join()) throw new Error(`the specification must have the fields ${known}`);
    for (const name of about) checkText(name, spec[name]);
    if (!isPossible(spec)) throw new Error("the specification has a number that is out of range");
    if (!(spec.epsilon <= maxEpsilon && logRatio(spec) <= spec.epsilon * (1 + 1e-9))) {
      throw new Error(`the reports must be ${Math.min(maxEpsilon, spec.epsilon)}-differentially private`);
    }
    if (domain !== undefined) checkDomain(domain, spec);
    const id = createHash("sha256").update(text, "latin1").digest().subarray(0, 8);
    this.header = Buffer.concat([Buffer.from("DP"), Buffer.from([1, code]), id]);
    Object.assign(this, { spec, domain, draws });
  }

  /** A client of a document that has the specification as a string, and labels. */
  static announced(text, options) {
    const { "dpnoise.protocol": specification, "dpnoise.domain": domain, ...others } = JSON.parse(text);
    if (specification === undefined) return new Client(text, options);
    if (!Array.isArray(domain) || Object.keys(others).length > 0) {
      throw new Error("the document must have dpnoise.protocol, dpnoise.domain and nothing else");
    }
    return new Client(specification, { ...options, domain });
  }

  /** The message of one person, whose value is a number or a label. */
  message(value) {
    return Buffer.concat([this.header, this.report(this.numberOf(value))]);
  }

  /** Check a value, and look its label up. */
  numberOf(value) {
    if (this.spec.protocol === "laplace_mean") {
      if (typeof value !== "number" || Number.isNaN(value)) throw new RangeError("the value must be a number");
      if (this.domain === undefined) {
        if ("labels" in this.spec) throw new Error("the bounds must be known, of which the specification has a digest");
        if (Math.abs(value) > 1) throw new RangeError("the value must be from -1 to 1");
        return value;
      }
      const [lower, upper] = this.domain;
      const [middle, half] = [lower / 2 + upper / 2, upper / 2 - lower / 2];
      const within = Math.max(lower, Math.min(upper, value));
      return Math.max(-1, Math.min(1, (within - middle) / half));
    }
    const v = this.domain ? this.domain.indexOf(value) : value;
    if (!Number.isInteger(v) || v < 0 || BigInt(v) >= this.spec.k) {
      const allowed = this.domain ? "a label" : `from 0 to ${this.spec.k - 1n}`;
      throw new RangeError(`the value must be ${allowed}`);
    }
    return BigInt(v);
  }

  /** The report on a value. */
  report(v) {
    const { draws, spec } = this;
    const { k, p, q, g, keep, planes, prime, order, epsilon, unit, bound } = spec;
    const mixed = (symbol, symbols) => {
      const [kept, other] = [draws.coin(keep, planes), draws.uniform(symbols)];
      return kept ? symbol : other;
    };
    const noisy = (exact) => {
      const sum = exact + draws.noise(epsilon, unit);
      return toBytes((sum > bound ? bound : sum < -bound ? -bound : sum) + bound, 2n ** 32n - 1n);
    };
    switch (spec.protocol) {
      case "randomized_response":
        return Buffer.from([Number(draws.coin(v === 1n ? p : q, planes))]);
      case "generalized_randomized_response":
        return toBytes(mixed(v, k), k - 1n);
      case "local_hashing": {
        const [a, b] = [draws.uniform(prime), draws.uniform(prime)];
        const hash = mixed((g * ((a * v + b) % prime)) / prime, g);
        return toBytes((a * prime + b) * g + hash, prime * prime * g - 1n);
      }
      case "hadamard_response": {
        const j = draws.uniform(order);
        return toBytes(2n * j + mixed(parity(v & j), 2n), 2n * order - 1n);
      }
      case "laplace_mean": {
        const x = BigInt(Math.floor(Math.abs(v) * 2 ** 62)) * (v < 0 ? -1n : 1n);
        const position = ((2n ** 62n + x) * (k - 1n) + draws.uniform(2n ** 63n)) / 2n ** 63n;
        return noisy(position - unit);
      }
      case "summation_histogram_encoding":
        return Buffer.concat(Array.from({ length: Number(k) }, (_, i) => noisy(BigInt(i) === v ? unit : 0n)));
      default: {
        const row = Buffer.alloc(Math.ceil(Number(k) / 8)); // a unary encoding, or thresholding
        for (let i = 0; i < k; i += 1) {
          row[i >> 3] |= Number(draws.coin(BigInt(i) === v ? p : q, planes)) << (i & 7);
        }
        return row;
      }
    }
  }
}

/** The fields of a specification, which must be in the one right form. JSON.parse would round numerators. */
function fieldsOf(text) {
  const spec = { __proto__: null };
  const fields = [...text.matchAll(/(?<=^\{|,)"([a-z_]+)":([0-9.e-]+|"(?:[^"\\]|\\.)*")/g)];
  const again = fields.map(([field, name, value]) => {
    spec[name] = value.startsWith('"') ? JSON.parse(value) : /^-?[0-9]+$/.test(value) ? BigInt(value) : Number(value);
    return typeof spec[name] === "string" ? `"${name}":${written(spec[name])}` : field;
  });
  const names = fields.map(([, name]) => name);
  const kindOf = (name) => ({ epsilon: "number", protocol: "string" })[name] ?? (name in LONGEST ? "string" : "bigint");
  const isRight = `{${again}}` === text && `${names}` === `${[...new Set(names)].sort()}`;
  if (!isRight || names.some((name) => typeof spec[name] !== kindOf(name))) {
    throw new Error("the specification must be as it was announced: another program wrote it again");
  }
  return spec;
}

/** A text as a specification has it. */
function written(text) {
  return JSON.stringify(text).replace(/[\x7f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Check a text that says what reports are about. */
function checkText(name, text) {
  const length = Buffer.byteLength(text);
  const isDigest = name !== "labels" || /^[0-9a-f]{32}$/.test(text);
  const isSeen = text.isWellFormed() && !/^ | $/.test(text) && !HIDDEN.test(text);
  if (!(length >= 1 && length <= LONGEST[name] && isDigest && isSeen)) {
    throw new Error(`the specification has a ${name} that is too long, or that hides something`);
  }
}

/** Check that the domain, labels or the bounds of a mean, is that of the specification. */
function checkDomain(domain, { protocol, k, labels }) {
  const ofMean = protocol === "laplace_mean";
  const [lower, upper] = domain;
  if (ofMean && !(domain.length === 2 && domain.every(Number.isFinite) && lower < upper)) {
    throw new Error("the domain must have two numbers, the lower one first");
  }
  const isText = (label) => typeof label === "string" && label.isWellFormed();
  if (!ofMean && !(BigInt(new Set(domain).size) === k && BigInt(domain.length) === k && domain.every(isText))) {
    throw new Error(`the domain must have ${k} different labels`);
  }
  const number = (length) => toBytes(BigInt(length), 2n ** 32n - 1n);
  const hash = createHash("sha256").update("dpnoise labels").update(number(domain.length));
  for (const text of ofMean ? domain.map(doubleOf) : domain) hash.update(number(Buffer.byteLength(text))).update(text);
  if (labels !== hash.digest("hex").slice(0, 32)) {
    throw new Error("the domain must be that of the specification, in its order");
  }
}

/** A double as specifications have it. */
function doubleOf(number) {
  const size = Math.abs(number);
  if (size > 0 && (size < 1e-5 || size >= 1e16)) return number.toExponential();
  return Number.isInteger(number) ? `${number}.0` : `${number}`;
}

/** Whether probabilities and sizes can be that: `logRatio` and the draws take it for granted. */
function isPossible(spec) {
  const { version, protocol, labels, period, question, epsilon, ...numbers } = spec;
  const { planes = 1n, p = 1n, q = 1n, keep = 1n, ...sizes } = numbers;
  if (!(planes >= 1n && planes <= 62n && epsilon >= 2 ** -20)) return false;
  const one = 1n << planes;
  return 0n < q && q <= p && p < one && 0n <= keep && keep < one && Object.values(sizes).every((size) => size >= 1n);
}

/** The logarithm of the largest ratio between the probabilities of a report given two values. */
function logRatio({ protocol, epsilon, k, g, p, q, keep, planes, unit }) {
  if (protocol === "laplace_mean") return (epsilon * Number(k - 1n)) / Number(2n * unit);
  if (protocol === "summation_histogram_encoding") return epsilon;
  const share = (numerator) => Number(numerator) / Number(1n << planes);
  if (keep !== undefined) {
    const symbols = { generalized_randomized_response: k, local_hashing: g, hadamard_response: 2n }[protocol];
    return Math.log1p((Number(symbols) * share(keep)) / share((1n << planes) - keep));
  }
  const [yes, no, notYes, notNo] = [p, q, (1n << planes) - p, (1n << planes) - q].map(share);
  const [logYes, logNo] = [Math.log(yes / no), Math.log(notNo / notYes)];
  return protocol === "randomized_response" ? Math.max(logYes, logNo) : logYes + logNo;
}

function parity(number) {
  let digits = number;
  for (let shift = 32n; shift > 0n; shift >>= 1n) digits ^= digits >> shift;
  return digits & 1n;
}

function gcd(a, b) {
  return b === 0n ? a : gcd(b, a % b);
}

function fromBytes(bytes) {
  return BigInt(`0x0${Buffer.from(bytes).reverse().toString("hex")}`);
}

/** A number in as many little-endian bytes as the largest one takes. */
function toBytes(number, largest) {
  const length = Math.ceil(largest.toString(2).length / 8);
  return Buffer.from(number.toString(16).padStart(2 * length, "0"), "hex").reverse();
}

/** Read a value; the message of JSON.parse would show it. */
function valueOf(line) {
  try {
    return JSON.parse(line);
  } catch {
    throw new Error("every line must be a value in JSON");
  }
}

function main(announcement) {
  const client = Client.announced(readFileSync(announcement, "utf-8"));
  const lines = readFileSync(0, "utf-8").split("\n").filter((line) => line.trim());
  const messages = lines.map((line) => client.message(valueOf(line)).toString("hex"));
  console.log(messages.join("\n"));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    if (process.argv.length !== 3) throw new Error("usage: node report.mjs ANNOUNCEMENT < VALUES");
    main(process.argv[2]);
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
