// The client of dpnoise for browsers and node: reports with local differential privacy, made on the device.
//
// All that touches a value is Rust, compiled to WebAssembly from clients/c. This file passes memory and randomness, and
// turns handles into objects. It has no dependencies and needs no bundler. dpnoise.d.ts documents it.

const ABI_VERSION = 1;
const HEADER_BYTES = 12;
const DIGEST_BYTES = 32;
const REPORTS = 0;
const MESSAGES = 1;
const KINDS = ["integers", "numbers", "texts", "attributes"];
const STATUS = ["ok", "parameter", "data", "state", "randomness", "handle", "memory", "internal", "allocation"];
const ENTROPY_BYTES = 65536; // what crypto.getRandomValues gives at once
const MEMORY_BYTES = 0x7fffffff;
const COUNTER_LIMIT = 2 ** 27;

// Taken once: a script that replaces it later changes no report.
const getRandomValues = globalThis.crypto?.getRandomValues?.bind(globalThis.crypto);

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class DpnoiseError extends Error {
  constructor(status, message, options) {
    super(message, options);
    this.name = "DpnoiseError";
    this.status = status;
  }
}

/** An instance of the WebAssembly module. */
class Engine {
  dead = false;
  #exports;
  #cause;
  #generators = new Map();
  #lastGenerator = 0;

  static async start(source) {
    const engine = new Engine();
    const random_bytes = (number, address, length) => engine.#random(number, address >>> 0, length >>> 0);
    engine.module = await compiled(await source);
    engine.#exports = (await WebAssembly.instantiate(engine.module, { dpnoise: { random_bytes } })).exports;
    if (engine.#exports.dpnoise_abi_version?.() !== ABI_VERSION) {
      throw new DpnoiseError("parameter", "the WebAssembly module must be the one that came with dpnoise.mjs");
    }
    return engine;
  }

  get collects() {
    return "dpnoise_accumulator_new" in this.#exports;
  }

  bytes(address, length) {
    return new Uint8Array(this.#exports.memory.buffer, address, length);
  }

  view(address, length) {
    return new DataView(this.#exports.memory.buffer, address, length);
  }

  doubles(address, length) {
    const view = this.view(address, 8 * length);
    return Float64Array.from({ length }, (_, i) => view.getFloat64(8 * i, true));
  }

  bigints(address, length) {
    const view = this.view(address, 8 * length);
    return BigInt64Array.from({ length }, (_, i) => view.getBigInt64(8 * i, true));
  }

  /** Runs `use` with the addresses of areas of these lengths, which are zero before and wiped afterwards. */
  withMemory(lengths, use) {
    const areas = [];
    try {
      for (const length of lengths) {
        const address = length > MEMORY_BYTES ? 0 : this.#run("allocate", length) >>> 0;
        if (address === 0) throw new DpnoiseError("allocation", `there is no memory for ${length} bytes`);
        areas.push([address, length]);
      }
      return use(...areas.map(([address]) => address));
    } finally {
      if (!this.dead) areas.forEach((area) => this.#run("wipe", ...area));
    }
  }

  call(name, ...given) {
    const status = STATUS[this.#try(name, ...given)];
    if (status !== "ok") throw new DpnoiseError(status, this.#message(), { cause: this.#cause });
  }

  /** The handle that a function writes to its last argument. */
  make(name, ...given) {
    return this.withMemory([8], (out) => {
      this.call(name, ...given, out);
      return this.view(out, 8).getBigUint64(0, true);
    });
  }

  /** The bytes that a function writes to memory of its caller. */
  take(name, handle) {
    return this.withMemory([4], (length) => {
      this.#try(name, handle, 0, 0, length); // writes the length at least; if it fails otherwise, so does the next call
      const capacity = this.view(length, 4).getUint32(0, true);
      return this.withMemory([capacity], (out) => {
        this.call(name, handle, out, capacity, length);
        return this.bytes(out, capacity).slice();
      });
    });
  }

  generator(random) {
    const number = ++this.#lastGenerator;
    this.#generators.set(number, random);
    return { number, handle: this.make("host_generator", number), random };
  }

  release(handle, generator) {
    if (this.dead) return;
    this.call("free", handle);
    if (generator) {
      this.call("free", generator.handle);
      this.#generators.delete(generator.number);
    }
  }

  #try(name, ...given) {
    this.#cause = undefined;
    return this.#run(name, ...given);
  }

  #run(name, ...given) {
    if (this.dead) throw new DpnoiseError("internal", "an earlier call failed in WebAssembly: make new objects");
    try {
      return this.#exports[`dpnoise_${name}`](...given);
    } catch {
      // A panic ends in a trap, with locks held and values in memory: nothing of this instance is used again.
      this.dead = true;
      this.bytes(0).fill(0);
      throw new DpnoiseError("internal", "internal error of dpnoise: please report it");
    }
  }

  #message() {
    const start = this.bytes(this.#run("error_message") >>> 0);
    return decoder.decode(start.subarray(0, start.indexOf(0)));
  }

  /** Fills memory of the module, and returns 0; or returns 1, and the module makes no report. */
  #random(number, address, length) {
    try {
      if (number === 0) {
        for (let done = 0; done < length; done += ENTROPY_BYTES) {
          const piece = this.bytes(address + done, Math.min(ENTROPY_BYTES, length - done));
          getRandomValues(piece);
        }
        return 0;
      }
      const bytes = new Uint8Array(length); // not memory of the module: it moves when it grows, and has values in it
      if (typeof this.#generators.get(number)(bytes)?.then === "function") {
        throw new TypeError("random must fill its argument before it returns, not promise to");
      }
      this.bytes(address, length).set(bytes);
      bytes.fill(0);
      return 0;
    } catch (error) {
      this.#cause = error;
      return 1;
    }
  }
}

async function compiled(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  if (typeof Response === "function" && source instanceof Response) {
    if (!source.ok) throw new DpnoiseError("parameter", `the WebAssembly module is missing: ${source.status}`);
    return WebAssembly.compile(await source.arrayBuffer()); // whatever type the server says it is of
  }
  const url = new URL(source, import.meta.url);
  if (url.protocol !== "file:") return compiled(await fetch(url));
  const files = "node:fs/promises"; // a name that bundlers do not follow
  const { readFile } = await import(/* webpackIgnore: true */ /* @vite-ignore */ files);
  return WebAssembly.compile(await readFile(url));
}

const FILES = {
  client: () => new URL("dpnoise.wasm", import.meta.url),
  collector: () => new URL("dpnoise-collector.wasm", import.meta.url),
};
const engines = { __proto__: null };

async function start(kind, source) {
  const starting = Engine.start(source);
  engines[kind] = starting;
  try {
    return await starting;
  } catch (error) {
    if (engines[kind] === starting) delete engines[kind];
    throw error;
  }
}

async function running(kind) {
  const engine = await (engines[kind] ?? start(kind, FILES[kind]()));
  return engine.dead ? start(kind, engine.module) : engine;
}

export async function load(source) {
  const engine = await start("client", source);
  if (engine.collects) engines.collector = engines.client;
}

/** What each object holds in the module: its engine, its handle, and the generator that was given. */
const holdings = new WeakMap();
const forgotten = new FinalizationRegistry(({ engine, handle, generator }) => engine.release(handle, generator));

/** What an object has itself: a script may have added properties to Object.prototype, such as `random`. */
function onlyOwn(object) {
  return { __proto__: null, ...object };
}

class Held {
  constructor(holding) {
    if (!(holding?.engine instanceof Engine)) {
      throw new DpnoiseError("parameter", `a ${new.target.name} is made by its static functions, not by new`);
    }
    const own = onlyOwn(holding);
    holdings.set(this, own);
    forgotten.register(this, own, this);
  }

  free() {
    const holding = holdings.get(this);
    if (!holding) return;
    holdings.delete(this);
    forgotten.unregister(this);
    holding.engine.release(holding.handle, holding.generator);
  }

  [Symbol.dispose ?? Symbol("dispose")]() {
    this.free();
  }
}

function holding(object, kind, argument = "this") {
  if (!(object instanceof kind)) throw new DpnoiseError("parameter", `${argument} must be a ${kind.name}`);
  const found = holdings.get(object);
  if (!found) throw new DpnoiseError("handle", `the ${kind.name} was freed`);
  return found;
}

function isWellFormed(text) {
  if (typeof text.isWellFormed === "function") return text.isWellFormed();
  return !Array.from(text).some((point) => point.length === 1 && point >= "\ud800" && point <= "\udfff");
}

/** Checks a question or a period, of which two spellings would be two. */
function checkSpelling(argument, text) {
  if (typeof text !== "string" || text !== text.normalize("NFC")) {
    const allowed = `a string that ${argument}.normalize("NFC") leaves as it is`;
    throw new DpnoiseError("parameter", `${argument} must be ${allowed}`);
  }
}

/** Makes something of public bytes or of a public text. */
function withBytes(engine, argument, given, make) {
  const bytes = typeof given === "string" && isWellFormed(given) ? encoder.encode(given) : given;
  if (!(bytes instanceof Uint8Array)) {
    throw new DpnoiseError("parameter", `${argument} must be a well-formed string or a Uint8Array, as it came`);
  }
  return withCopy(engine, bytes, make);
}

function withCopy(engine, bytes, make) {
  return engine.withMemory([bytes.length], (address) => {
    engine.bytes(address, bytes.length).set(bytes);
    return make(address, bytes.length);
  });
}

/** Makes something of texts, which are joined as in an Arrow array. */
function withTexts(engine, argument, texts, make) {
  let capacity = 0;
  for (const text of texts) {
    if (!isWellFormed(text)) {
      throw new DpnoiseError("data", `${argument} must be well-formed texts: one has half a surrogate pair`);
    }
    capacity += 3 * text.length; // a code unit has at most 3 bytes
  }
  return engine.withMemory([capacity, 8 * (texts.length + 1)], (address, offsets) => {
    const bytes = engine.bytes(address, capacity);
    const view = engine.view(offsets, 8 * (texts.length + 1));
    let end = 0;
    texts.forEach((text, i) => {
      end += encoder.encodeInto(text, bytes.subarray(end)).written;
      view.setUint32(8 * (i + 1), end, true);
    });
    return make(address, offsets);
  });
}

/** The most bytes of counters, as the module takes them. */
function limited(limit = COUNTER_LIMIT) {
  if (!Number.isSafeInteger(limit) || limit < 0) {
    throw new DpnoiseError("parameter", `limit must be a number of bytes, at least 0, got ${limit}`);
  }
  return Math.min(limit, 0xffffffff);
}

export class Memo extends Held {
  static async create(n = 1) {
    if (!Number.isSafeInteger(n) || n < 0) {
      throw new DpnoiseError("parameter", `n must be a number of people, at least 0, got ${n}`);
    }
    const engine = await running("client");
    return new Memo({ engine, handle: engine.make("memo_new", BigInt(n)) });
  }

  static async fromBytes(bytes) {
    if (!(bytes instanceof Uint8Array)) throw new DpnoiseError("parameter", "bytes must be a Uint8Array");
    const engine = await running("client");
    const handle = withCopy(engine, bytes, (...area) => engine.make("memo_from_bytes", ...area));
    return new Memo({ engine, handle });
  }

  toBytes() {
    const { engine, handle } = holding(this, Memo);
    return engine.take("memo_to_bytes", handle);
  }
}

export class Client extends Held {
  #takes;
  #k;
  #reportBytes;
  #counterBytes;
  #keepsMemo;
  #header;

  static async fromSpecification(specification, options) {
    const { memo, question, random, limit } = onlyOwn(options);
    const most = limited(limit);
    if (random !== undefined && typeof random !== "function") {
      throw new DpnoiseError("parameter", "random must be a function that fills a Uint8Array");
    }
    if ((memo === undefined) !== (question === undefined)) {
      throw new DpnoiseError("parameter", "memo and question must be given together");
    }
    if (question !== undefined) checkSpelling("question", question);
    const engine = memo === undefined ? await running("client") : holding(memo, Memo, "memo").engine;
    let handle = withBytes(engine, "specification", specification, (...area) =>
      engine.make("protocol_from_json", ...area, most),
    );
    if (memo !== undefined) {
      const plain = handle;
      try {
        handle = withBytes(engine, "question", question, (...area) =>
          engine.make("protocol_with_memo", plain, holding(memo, Memo, "memo").handle, ...area),
        );
      } finally {
        engine.release(plain);
      }
    }
    return new Client({ engine, handle, generator: random && engine.generator(random), remembers: memo !== undefined });
  }

  constructor(held) {
    super(held);
    const { engine, handle } = held;
    engine.withMemory([4, 4, 4, 4, 4, HEADER_BYTES], (takes, keepsMemo, k, reportBytes, counterBytes, header) => {
      engine.call("protocol_facts", handle, takes, keepsMemo, k, reportBytes, counterBytes);
      engine.call("protocol_header", handle, header, HEADER_BYTES);
      const read = (address) => engine.view(address, 4).getUint32(0, true);
      this.#takes = KINDS[read(takes)];
      this.#keepsMemo = read(keepsMemo) === 1;
      this.#k = read(k);
      this.#reportBytes = read(reportBytes);
      this.#counterBytes = read(counterBytes);
      this.#header = engine.bytes(header, HEADER_BYTES).slice();
    });
  }

  about(options) {
    const { engine, handle, generator } = holding(this, Client);
    const { question = "", period = "" } = onlyOwn(options);
    checkSpelling("question", question);
    checkSpelling("period", period);
    const made = withBytes(engine, "question", question, (...asked) =>
      withBytes(engine, "period", period, (...told) => engine.make("protocol_about", handle, ...asked, ...told)),
    );
    return new Client({ engine, handle: made, generator: generator && engine.generator(generator.random) });
  }

  get specification() {
    const { engine, handle } = holding(this, Client);
    return decoder.decode(engine.take("protocol_to_json", handle));
  }

  get bareDigest() {
    const { engine, handle } = holding(this, Client);
    return engine.withMemory([DIGEST_BYTES], (out) => {
      engine.call("protocol_bare_digest", handle, out, DIGEST_BYTES);
      return engine.bytes(out, DIGEST_BYTES).slice();
    });
  }

  get takes() {
    return this.#takes;
  }

  get keepsMemo() {
    return this.#keepsMemo;
  }

  get k() {
    return this.#k;
  }

  get epsilon() {
    return this.#guarantee("protocol_epsilon");
  }

  get delta() {
    return this.#guarantee("protocol_delta");
  }

  #guarantee(name) {
    const { engine, handle } = holding(this, Client);
    return engine.withMemory([8], (out) => {
      engine.call(name, handle, out);
      return engine.view(out, 8).getFloat64(0, true);
    });
  }

  get reportBytes() {
    return this.#reportBytes;
  }

  get counterBytes() {
    return this.#counterBytes;
  }

  get messageBytes() {
    return HEADER_BYTES + this.#reportBytes;
  }

  get header() {
    return this.#header.slice();
  }

  get id() {
    return Array.from(this.#header.subarray(-8), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  message(value) {
    return this.#perturb(MESSAGES, [value]);
  }

  report(value) {
    return this.#perturb(REPORTS, [value]);
  }

  messages(values) {
    return this.#perturb(MESSAGES, values);
  }

  reports(values) {
    return this.#perturb(REPORTS, values);
  }

  #perturb(form, values) {
    const { engine, handle, generator, remembers } = holding(this, Client);
    if (this.#keepsMemo && !remembers) {
      throw new DpnoiseError("parameter", "the protocol needs a memo: give memo and question to fromSpecification");
    }
    if (this.#takes === "attributes") {
      throw new DpnoiseError("parameter", "the protocol must be of one attribute, got one of several");
    }
    if (!Array.isArray(values) && !(ArrayBuffer.isView(values) && values.length >= 0)) throw this.#wrongKind();
    const n = values.length;
    const row = form === MESSAGES ? this.messageBytes : this.#reportBytes;
    const perturb = (...given) =>
      engine.withMemory([n * row], (out) => {
        const call = [`perturb_${this.#takes}`, handle, ...given, n, form, 1, generator?.handle ?? 0n, out, n * row];
        engine.call(...call);
        return engine.bytes(out, n * row).slice();
      });
    if (this.#takes === "texts") {
      const texts = Array.from(values);
      if (!texts.every((text) => typeof text === "string")) throw this.#wrongKind();
      return withTexts(engine, "values", texts, perturb);
    }
    return engine.withMemory([8 * n], (address) => {
      const view = engine.view(address, 8 * n);
      if (this.#takes === "numbers") this.#writeNumbers(view, values);
      else this.#writeIntegers(view, values);
      return perturb(address);
    });
  }

  #writeIntegers(view, values) {
    if (values instanceof Float64Array || values instanceof Float32Array) throw this.#wrongKind();
    for (let i = 0; i < values.length; i++) {
      let value = values[i];
      if (typeof value === "boolean" && this.#k === 2) value = Number(value);
      if (typeof value === "bigint") {
        if (BigInt.asIntN(64, value) !== value) throw this.#wrongInteger();
        view.setBigInt64(8 * i, value, true);
      } else if (typeof value === "number") {
        if (!Number.isSafeInteger(value)) throw this.#wrongInteger();
        view.setInt32(8 * i, value, true); // takes it modulo 2^32
        view.setInt32(8 * i + 4, Math.floor(value / 2 ** 32), true);
      } else {
        throw this.#wrongKind();
      }
    }
  }

  #writeNumbers(view, values) {
    for (let i = 0; i < values.length; i++) {
      if (typeof values[i] !== "number") throw this.#wrongKind();
      view.setFloat64(8 * i, values[i], true);
    }
  }

  /** The values are not shown, nor what they are instead. */
  #wrongKind() {
    const arrays = {
      integers: "integers: numbers, bigints, or a typed array of them, and booleans if k is 2",
      numbers: "numbers, or a typed array of them",
      texts: "strings",
    };
    return new DpnoiseError("parameter", `values must be ${arrays[this.#takes]}`);
  }

  #wrongInteger() {
    return new DpnoiseError("data", "values must be integers that are exact: safe ones, or bigints of 64 bits");
  }
}

export class Accumulator extends Held {
  static async fromSpecification(specification, options) {
    const most = limited(onlyOwn(options).limit);
    const engine = await running("collector");
    const make = (...area) => engine.make("protocol_from_json", ...area, most);
    const protocol = withBytes(engine, "specification", specification, make);
    try {
      return new Accumulator({ engine, handle: engine.make("accumulator_new", protocol) });
    } finally {
      engine.release(protocol);
    }
  }

  static async fromBytes(bytes, options) {
    if (!(bytes instanceof Uint8Array)) throw new DpnoiseError("parameter", "bytes must be a Uint8Array");
    const most = limited(onlyOwn(options).limit);
    const engine = await running("collector");
    const handle = withCopy(engine, bytes, (...area) => engine.make("accumulator_from_bytes", ...area, most));
    return new Accumulator({ engine, handle });
  }

  get n() {
    return this.#counts()[0];
  }

  get rejected() {
    return this.#counts()[1];
  }

  addMessages(messages) {
    const { engine, handle } = holding(this, Accumulator);
    const rows = messages instanceof Uint8Array;
    const width = HEADER_BYTES + this.#facts().reportBytes;
    if (rows && messages.length % width !== 0) {
      throw new DpnoiseError("parameter", `messages must be rows of ${width} bytes each, got ${messages.length} bytes`);
    }
    const each = rows ? undefined : Array.from(messages);
    if (each && !each.every((message) => message instanceof Uint8Array)) {
      throw new DpnoiseError("parameter", "messages must be Uint8Arrays, or one Uint8Array of rows");
    }
    const n = each ? each.length : messages.length / width;
    const length = each ? each.reduce((sum, message) => sum + message.length, 0) : messages.length;
    engine.withMemory([length, 8 * (n + 1)], (address, offsets) => {
      const bytes = engine.bytes(address, length);
      const view = engine.view(offsets, 8 * (n + 1));
      if (rows) bytes.set(messages);
      for (let i = 0, end = 0; i < n; i++) {
        if (each) bytes.set(each[i], end);
        end += each ? each[i].length : width;
        view.setUint32(8 * (i + 1), end, true);
      }
      engine.call("accumulator_add_messages", handle, address, offsets, n, 1);
    });
  }

  addReports(reports) {
    const { engine, handle } = holding(this, Accumulator);
    if (!(reports instanceof Uint8Array)) throw new DpnoiseError("parameter", "reports must be a Uint8Array of rows");
    withCopy(engine, reports, (...area) => engine.call("accumulator_add_reports", handle, ...area, 1));
  }

  merge(other) {
    const { engine, handle } = holding(this, Accumulator);
    const added = holding(other, Accumulator, "other");
    if (added.engine !== engine) throw new DpnoiseError("handle", "other must be of the same WebAssembly module");
    engine.call("accumulator_merge", handle, added.handle);
  }

  toBytes() {
    const { engine, handle } = holding(this, Accumulator);
    return engine.take("accumulator_to_bytes", handle);
  }

  attribute(name) {
    const { engine, handle } = holding(this, Accumulator);
    if (typeof name !== "string") throw new DpnoiseError("parameter", "name must be a string");
    const make = (...area) => engine.make("accumulator_attribute", handle, ...area);
    return new Accumulator({ engine, handle: withCopy(engine, new TextEncoder().encode(name), make) });
  }

  estimate() {
    const { k } = this.#facts();
    return this.#estimated(k, (call, ...areas) => call("estimate", ...areas, k));
  }

  estimateMean() {
    const { engine, handle } = holding(this, Accumulator);
    const [mean, standardError] = engine.withMemory([8, 8], (...areas) => {
      engine.call("accumulator_estimate_mean", handle, ...areas);
      return areas.map((address) => engine.view(address, 8).getFloat64(0, true));
    });
    const [n, rejected] = this.#counts();
    return { mean, standardError, n, rejected };
  }

  estimateDensity(options) {
    const smoothing = onlyOwn(options).smoothing ?? true;
    if (typeof smoothing !== "boolean") throw new DpnoiseError("parameter", "smoothing must be a boolean");
    const { engine, handle } = holding(this, Accumulator);
    const { k } = this.#facts();
    const probabilities = engine.withMemory([8 * k], (out) => {
      engine.call("accumulator_estimate_density", handle, Number(smoothing), out, k);
      return engine.doubles(out, k);
    });
    const [n, rejected] = this.#counts();
    return { probabilities, n, rejected };
  }

  estimateRanges(ranges) {
    const { engine } = holding(this, Accumulator);
    const given = Array.from(ranges, (range) => Array.from(range));
    if (!given.every((range) => range.length === 2 && range.every(Number.isSafeInteger))) {
      throw new DpnoiseError("parameter", "ranges must be pairs of integers: the first and the last value");
    }
    return this.#estimated(given.length, (call, ...areas) =>
      engine.withMemory([8 * given.length, 8 * given.length], (...ends) => {
        ends.forEach((address, end) => {
          const view = engine.view(address, 8 * given.length);
          given.forEach((range, i) => view.setBigInt64(8 * i, BigInt(range[end]), true));
        });
        call("estimate_ranges", ...ends, given.length, ...areas);
      }),
    );
  }

  estimateQuantiles(q) {
    const { engine, handle } = holding(this, Accumulator);
    const shares = Array.from(q);
    const n = shares.length;
    if (!shares.every((share) => typeof share === "number")) {
      throw new DpnoiseError("parameter", "q must be numbers from 0 to 1");
    }
    return engine.withMemory([8 * n, 8 * n], (address, out) => {
      shares.forEach((share, i) => engine.view(address, 8 * n).setFloat64(8 * i, share, true));
      engine.call("accumulator_estimate_quantiles", handle, address, n, out);
      return Array.from(engine.bigints(out, n), Number);
    });
  }

  estimateCandidates(texts) {
    const { engine } = holding(this, Accumulator);
    const given = Array.from(texts);
    if (typeof texts === "string" || !given.every((text) => typeof text === "string")) {
      throw new DpnoiseError("parameter", "texts must be strings");
    }
    return this.#estimated(given.length, (call, ...areas) =>
      withTexts(engine, "texts", given, (...joined) => call("estimate_candidates", ...joined, given.length, ...areas)),
    );
  }

  estimatePrefixes(level = 0.95) {
    const { engine, handle } = holding(this, Accumulator);
    if (typeof level !== "number") throw new DpnoiseError("parameter", "level must be a number between 0 and 1");
    for (let capacity = 256; ; ) {
      const lengths = [8 * capacity, 8 * capacity, 8 * capacity, 4, 4];
      const made = engine.withMemory(lengths, (values, counts, standardErrors, out, whole) => {
        const areas = [values, counts, standardErrors, capacity, out, whole];
        engine.call("accumulator_estimate_prefixes", handle, level, ...areas);
        const found = engine.view(out, 4).getUint32(0, true);
        if (found > capacity) {
          capacity = found;
          return undefined;
        }
        return {
          values: engine.bigints(values, found),
          counts: engine.doubles(counts, found),
          standardErrors: engine.doubles(standardErrors, found),
          complete: engine.view(whole, 4).getUint32(0, true) === 1,
        };
      });
      if (made) {
        const [n, rejected] = this.#counts();
        return { ...made, n, rejected };
      }
    }
  }

  /** What `estimate` writes: counts and their standard errors. */
  #estimated(length, estimate) {
    const { engine, handle } = holding(this, Accumulator);
    const call = (name, ...given) => engine.call(`accumulator_${name}`, handle, ...given);
    const [counts, standardErrors] = engine.withMemory([8 * length, 8 * length], (...areas) => {
      estimate(call, ...areas);
      return areas.map((address) => engine.doubles(address, length));
    });
    const [n, rejected] = this.#counts();
    return { counts, standardErrors, n, rejected };
  }

  #counts() {
    const { engine, handle } = holding(this, Accumulator);
    return engine.withMemory([8, 8], (...areas) => {
      engine.call("accumulator_counts", handle, ...areas);
      return areas.map((address) => Number(engine.view(address, 8).getBigUint64(0, true)));
    });
  }

  #facts() {
    const { engine, handle } = holding(this, Accumulator);
    const protocol = engine.make("accumulator_protocol", handle);
    try {
      return engine.withMemory([4, 4], (k, reportBytes) => {
        engine.call("protocol_facts", protocol, 0, 0, k, reportBytes, 0);
        const read = (address) => engine.view(address, 4).getUint32(0, true);
        return { k: read(k), reportBytes: read(reportBytes) };
      });
    } finally {
      engine.release(protocol);
    }
  }
}
