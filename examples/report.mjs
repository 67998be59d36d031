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

const CODES = {
  randomized_response: 1,
  symmetric_unary_encoding: 2,
  optimized_unary_encoding: 3,
  unary_encoding: 4,
  generalized_randomized_response: 5,
  local_hashing: 6,
  hadamard_response: 7,
  laplace_mean: 15,
  threshold_histogram_encoding: 17,
  summation_histogram_encoding: 18,
};

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
   * @param {string[]} [options.domain] the labels of the values
   * @param {string} [options.normalization] "NFC" if texts are compared in that form
   * @param {number} [options.maxEpsilon] the largest epsilon that the application allows
   * @param {Draws} [options.draws] for tests only
   */
  constructor(specification, options) {
    // Only what the object has itself: another script may have added `draws` to Object.prototype.
    const { domain, normalization, maxEpsilon = Infinity, draws = new Draws() } = { __proto__: null, ...options };
    const text = Buffer.from(specification).toString("latin1").replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, "");
    const spec = JSON.parse(text.replace(/(?<=":)[0-9]+(?=[,}])/g, '"$&"')); // JSON.parse would round numerators
    for (const [name, value] of Object.entries(spec)) {
      if (typeof value === "string" && name !== "protocol") spec[name] = BigInt(value);
    }
    if (!/^\{("[a-z_]+":("[a-z_]+"|[0-9.e-]+)[,}])+$/.test(text) || typeof spec.epsilon !== "number") {
      throw new Error("the specification must be as it was announced: another program wrote it again");
    }
    if (spec.version !== 1n || !Object.hasOwn(CODES, spec.protocol)) {
      throw new Error(`this client knows version 1 of ${Object.keys(CODES).join(", ")}`);
    }
    if (!isPossible(spec)) throw new Error("the specification has a number that is out of range");
    if (!(spec.epsilon <= maxEpsilon && logRatio(spec) <= spec.epsilon * (1 + 1e-9))) {
      throw new Error(`the reports must be ${Math.min(maxEpsilon, spec.epsilon)}-differentially private`);
    }
    if (![undefined, "NFC"].includes(normalization)) throw new Error("the normalization must be NFC");
    if (domain !== undefined && (BigInt(new Set(domain).size) !== spec.k || BigInt(domain.length) !== spec.k)) {
      throw new Error(`the domain must have ${spec.k} different labels`);
    }
    const id = createHash("sha256").update(text, "latin1").digest().subarray(0, 8);
    this.header = Buffer.concat([Buffer.from("DP"), Buffer.from([1, CODES[spec.protocol]]), id]);
    Object.assign(this, { spec, domain, normalization, draws });
  }

  /** A client of a document that has the specification as a string, and labels. */
  static announced(text, options) {
    const found = JSON.parse(text);
    if (found["dpnoise.protocol"] === undefined) return new Client(text, options);
    const [domain, normalization] = [found["dpnoise.domain"], found["dpnoise.normalization"]];
    return new Client(found["dpnoise.protocol"], { ...options, domain, normalization });
  }

  /** The message of one person, whose value is a number or a label. */
  message(value) {
    return Buffer.concat([this.header, this.report(this.numberOf(value))]);
  }

  /** Check a value, and look its label up. */
  numberOf(value) {
    if (this.spec.protocol === "laplace_mean") {
      if (typeof value !== "number" || !(Math.abs(value) <= 1)) throw new RangeError("the value must be from -1 to 1");
      return value;
    }
    const label = this.normalization && typeof value === "string" ? value.normalize(this.normalization) : value;
    const v = this.domain ? this.domain.indexOf(label) : value;
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

/** Whether probabilities and sizes can be that: `logRatio` and the draws take it for granted. */
function isPossible({ version, protocol, epsilon, planes = 1n, p = 1n, q = 1n, keep = 1n, ...sizes }) {
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
