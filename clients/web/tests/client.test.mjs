// What the client for the web must do beyond what all clients must: node --expose-gc --test clients/web/tests/

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const dist = new URL("../dist/", import.meta.url);
const vectors = JSON.parse(readFileSync(new URL("../../../tests/vectors/local.json", import.meta.url), "utf-8"));

// The memory of each module that is started, to see what stays in it.
const memories = [];
const { instantiate } = WebAssembly;
WebAssembly.instantiate = async (module, imports) => {
  const instance = await instantiate(module, imports);
  memories.push(instance.exports.memory);
  return instance;
};

const { Accumulator, Client, DpnoiseError, Memo, load } = await import(new URL("dpnoise.mjs", dist));
const utf8 = new TextEncoder();
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const unhex = (text) => new Uint8Array(Buffer.from(text, "hex"));
const spec = (name) => vectors.find(({ specification }) => JSON.parse(specification).protocol === name).specification;
const UNARY = spec("optimized_unary_encoding");
const MEAN = spec("duchi_mean");
const SKETCH = spec("count_mean_sketch");
const LOLOHA = spec("loloha");

const occurrences = (bytes) => memories.filter(({ buffer }) => Buffer.from(buffer).includes(bytes)).length;
const refused = (status, ...shown) => (error) => {
  assert.ok(error instanceof DpnoiseError, error.stack);
  assert.equal(error.status, status, error.message);
  assert.ok(error.message.length > 10);
  for (const text of shown) assert.ok(!error.message.includes(text), error.message);
  return true;
};

/** A generator that plays these bytes once. */
function played(script) {
  let left = script;
  return (bytes) => {
    if (left.length < bytes.length) throw new Error("the script has no bytes left");
    bytes.set(left.subarray(0, bytes.length));
    left = left.subarray(bytes.length);
  };
}

test("messages are headers and reports, and states add up", async () => {
  const vector = vectors.find(({ specification }) => specification === UNARY);
  const client = () => Client.fromSpecification(UNARY, { random: played(unhex(vector.random)) });
  const reports = (await client()).reports(vector.values);
  const { header, reportBytes, messageBytes, id } = await client();
  assert.equal(reportBytes * vector.values.length, reports.length);
  assert.equal(id, vector.spec_id);
  const messages = (await client()).messages(vector.values);
  assert.equal(hex(messages), vector.reports.map((report) => hex(header) + report).join(""));
  assert.equal(messages.length, messageBytes * vector.values.length);

  const [rows, halves, other] = await Promise.all(
    [1, 2, 3].map(() => Accumulator.fromSpecification(utf8.encode(UNARY))),
  );
  rows.addMessages(messages);
  assert.deepEqual([rows.n, rows.rejected], [vector.reports.length, 0]);
  halves.addReports(reports.subarray(0, 3 * reportBytes));
  other.addMessages(messages.subarray(3 * messageBytes));
  halves.merge(other);
  assert.equal(hex(halves.toBytes()), hex(rows.toBytes()));
  assert.equal(hex((await Accumulator.fromBytes(rows.toBytes())).toBytes()), hex(rows.toBytes()));
  assert.throws(() => halves.merge(halves), refused("parameter"));
  assert.equal(halves.n, rows.n);
});

test("all forms of values give the same reports", async () => {
  const script = unhex(vectors[2].random);
  const values = [3, 0, 14];
  const reports = async (given, specification = UNARY) =>
    hex((await Client.fromSpecification(specification, { random: played(script) })).reports(given));
  const expected = await reports(values);
  const forms = [values.map(BigInt), ...[Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Uint32Array]];
  for (const form of forms) assert.equal(await reports(Array.isArray(form) ? form : form.from(values)), expected);
  for (const form of [BigInt64Array, BigUint64Array]) {
    assert.equal(await reports(form.from(values.map(BigInt))), expected);
  }
  const answers = spec("randomized_response");
  assert.equal(await reports([true, false], answers), await reports([1, 0], answers));
  for (const form of [Float32Array, Float64Array]) {
    assert.equal(await reports(form.from([0.5, -1]), MEAN), await reports([0.5, -1], MEAN));
  }
  const client = await Client.fromSpecification(UNARY);
  assert.equal(client.reports([]).length + client.messages(new Int32Array()).length, 0);
});

test("large integers are exact", async () => {
  const bits = (await Client.fromSpecification(spec("prefix_extension"))).reports([2 ** 20 - 1, 2n ** 20n - 1n]);
  assert.equal(bits.length, 2);
  const client = await Client.fromSpecification(spec("prefix_extension"));
  for (const value of [2 ** 20, 2 ** 32, -1, 2 ** 53 - 1, 1 - 2 ** 53, 2n ** 63n - 1n, -(2n ** 63n)]) {
    assert.throws(() => client.report(value), refused("data", String(value)));
  }
  assert.throws(() => client.reports(BigUint64Array.of(2n ** 64n - 1n)), refused("data"));
});

test("values that are of no use are refused, and not shown", async () => {
  const clients = [UNARY, MEAN, SKETCH].map((specification) => Client.fromSpecification(specification));
  const [integers, numbers, texts] = await Promise.all(clients);
  assert.throws(() => integers.message(15), refused("data"));
  for (const value of [-1, 1.5, NaN, Infinity, 2 ** 53, 2n ** 64n, -(2n ** 65n), 987654321]) {
    assert.throws(() => integers.message(value), refused("data", String(value)));
    assert.throws(() => integers.messages([1, value]), refused("data", String(value)));
  }
  for (const value of ["private", "7", null, undefined, true, {}, [3], Symbol("private"), new Int32Array(2)]) {
    assert.throws(() => integers.message(value), refused("parameter", "private"));
  }
  for (const values of [7, "private", null, undefined, {}, new DataView(new ArrayBuffer(8)), new Set([1]), [1, , 2]]) {
    assert.throws(() => integers.messages(values), refused("parameter", "private"));
  }
  assert.throws(() => integers.messages(Float64Array.of(1)), refused("parameter"));
  for (const value of [1.0000001, -2, NaN]) assert.throws(() => numbers.message(value), refused("data", String(value)));
  for (const value of ["0.5", 1n, true]) assert.throws(() => numbers.message(value), refused("parameter"));
  for (const value of ["private \ud800", "\udc00 private"]) {
    assert.throws(() => texts.message(value), refused("data", "private"));
  }
  for (const value of [7, null]) assert.throws(() => texts.message(value), refused("parameter"));
  assert.equal(texts.messages(["", "\u{1f347}", "\u{fffd}", "a\0b"]).length, 4 * texts.messageBytes);
});

test("texts are well-formed without String.isWellFormed, too", async () => {
  const { isWellFormed } = String.prototype;
  try {
    String.prototype.isWellFormed = undefined;
    const client = await Client.fromSpecification(SKETCH);
    assert.equal(client.message("\u{1f347} \ud83d\ude00").length, client.messageBytes);
    for (const value of ["\ud800", "a\udc00", "\udc00\ud800"]) {
      assert.throws(() => client.message(value), refused("data"));
    }
  } finally {
    String.prototype.isWellFormed = isWellFormed;
  }
});

test("a specification is its bytes", async () => {
  for (const given of [JSON.parse(UNARY), null, undefined, 7, [..."{}"], new ArrayBuffer(9), "\ud800"]) {
    await assert.rejects(Client.fromSpecification(given), refused("parameter"));
    await assert.rejects(Accumulator.fromSpecification(given), refused("parameter"));
  }
  const { takes, keepsMemo, k, epsilon, delta, header } = await Client.fromSpecification(`\n${UNARY} `);
  assert.deepEqual([takes, keepsMemo, k, hex(header)], ["integers", false, 15, "44500103d63975fc79f37bc3"]);
  assert.ok(epsilon > 0.999 && epsilon <= 1);
  assert.equal(delta, 0);
});

/** The module as it is when it is loaded while `crypto` is something else. */
async function loadedWith(crypto, name) {
  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true });
  try {
    return await import(new URL(`dpnoise.mjs?${name}`, dist));
  } finally {
    Object.defineProperty(globalThis, "crypto", own);
  }
}

test("there is no report without randomness", async () => {
  const planted = new Error("planted");
  const throwing = { getRandomValues: () => { throw planted; } };
  for (const [name, value] of Object.entries({ none: undefined, empty: {}, throwing })) {
    const module = await loadedWith(value, name);
    const status = (error) => error instanceof module.DpnoiseError && error.status === "randomness";
    const client = await module.Client.fromSpecification(UNARY);
    assert.throws(() => client.message(3), status);
    assert.throws(() => client.messages(new Int32Array(1000)), status);
    await assert.rejects(module.Memo.create(), status);
    if (value === throwing) assert.throws(() => client.message(3), { cause: planted });
  }
});

test("randomness is the platform's, whatever other scripts do after the client is loaded", async () => {
  const fill = (bytes) => bytes.fill(7);
  const { getRandomValues } = Crypto.prototype;
  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  const names = ["random", "memo", "question", "engine", "handle", "generator", "remembers", "client", "collector"];
  const work = async () => {
    const client = await Client.fromSpecification(UNARY);
    const reports = Array.from({ length: 100 }, () => hex(client.report(3)));
    const memo = await Memo.create();
    const counters = await Accumulator.fromSpecification(UNARY);
    counters.addMessages(client.about({}).message(3));
    const found = [new Set(reports).size, hex(memo.toBytes()), counters.n];
    for (const object of [client, memo, counters]) object.free();
    return found;
  };
  const before = await Client.fromSpecification(UNARY);
  Crypto.prototype.getRandomValues = fill;
  Object.defineProperty(globalThis, "crypto", { value: { getRandomValues: fill }, configurable: true });
  for (const name of names) Object.defineProperty(Object.prototype, name, { value: fill, configurable: true });
  const outcomes = [];
  try {
    outcomes.push(await work(), await work(), hex(before.report(3)), hex(before.report(3)));
  } finally {
    for (const name of names) delete Object.prototype[name];
    Object.defineProperty(globalThis, "crypto", own);
    Crypto.prototype.getRandomValues = getRandomValues;
  }
  const [[reports, memo, n], [again, other, m]] = outcomes;
  // 100 reports of 15 bits are one with a probability below 1e-100.
  assert.ok(reports > 1 && again > 1);
  assert.notEqual(memo, other);
  assert.deepEqual([n, m], [1, 1]);
  assert.equal(before.message(3).length, 14, "what was made before is intact");
});

test("a generator that does not fill its argument is refused", async () => {
  const given = [
    () => { throw new Error("planted"); },
    async (bytes) => crypto.getRandomValues(bytes),
    (bytes) => { structuredClone(bytes, { transfer: [bytes.buffer] }); },
    played(new Uint8Array(1)),
  ];
  for (const random of given) {
    const client = await Client.fromSpecification(UNARY, { random });
    assert.throws(() => client.message(3), refused("randomness"), String(random));
  }
  await assert.rejects(Client.fromSpecification(UNARY, { random: 7 }), refused("parameter"));
});

test("a generator may use clients itself, but not its own", async () => {
  const inner = await Client.fromSpecification(UNARY);
  let nested;
  const outer = await Client.fromSpecification(UNARY, {
    random: (bytes) => {
      nested = inner.messages(new Int32Array(100_000)); // memory grows meanwhile
      crypto.getRandomValues(bytes);
    },
  });
  assert.equal(outer.message(3).length, 14);
  assert.equal(nested.length, 1_400_000);
  const own = await Client.fromSpecification(UNARY, { random: () => { own.message(3); } });
  assert.throws(() => own.message(3), refused("randomness"));
});

test("two clients do not share a generator", async () => {
  const vector = vectors[2];
  const client = () => Client.fromSpecification(UNARY, { random: played(unhex(vector.random)) });
  const [one, other] = [await client(), await client()];
  assert.equal(hex(one.reports(vector.values)), hex(other.reports(vector.values)));
  one.free();
  assert.throws(() => other.reports(vector.values), refused("randomness"));
});

test("the system's randomness gives different reports", async () => {
  const client = await Client.fromSpecification(spec("laplace_mean"));
  const reports = new Set(Array.from({ length: 1000 }, () => hex(client.report(0))));
  assert.ok(reports.size > 900);
  const answers = await Client.fromSpecification(spec("randomized_response"));
  assert.equal(new Set(answers.reports(new Int8Array(1000))).size, 2);
});

test("what was freed is refused", async () => {
  const memo = await Memo.create();
  const client = await Client.fromSpecification(LOLOHA, { memo, question: "colour" });
  const counters = await Accumulator.fromSpecification(UNARY);
  for (const object of [memo, client, counters]) {
    object.free();
    object.free();
  }
  assert.throws(() => memo.toBytes(), refused("handle"));
  assert.throws(() => client.message(3), refused("handle"));
  assert.throws(() => client.epsilon, refused("handle"));
  assert.throws(() => counters.estimate(), refused("handle"));
  assert.throws(() => counters.n, refused("handle"));
  await assert.rejects(Client.fromSpecification(LOLOHA, { memo, question: "colour" }), refused("handle"));
  const open = await Accumulator.fromSpecification(UNARY);
  assert.throws(() => open.merge(counters), refused("handle"));
  assert.throws(() => open.merge(client), refused("parameter"));
  for (const kind of [Client, Memo, Accumulator]) assert.throws(() => new kind(), refused("parameter"));
});

test("what is forgotten is freed", { skip: !globalThis.gc && "node was not started with --expose-gc" }, async () => {
  // A client has the only reference to its generator.
  const make = async () => {
    const random = (bytes) => crypto.getRandomValues(bytes);
    await Client.fromSpecification(UNARY, { random });
    return new WeakRef(random);
  };
  const random = await make();
  const pause = () => new Promise((resolve) => setTimeout(resolve, 10));
  for (let i = 0; i < 100 && random.deref(); i++) {
    await pause(); // until then, what deref gave is alive
    globalThis.gc();
    await pause();
  }
  assert.equal(random.deref(), undefined);
});

test("a memo keeps what it decides", async () => {
  const memo = await Memo.create();
  const bytes = memo.toBytes();
  assert.equal(bytes.length, 52);
  const client = async (question, given) =>
    Client.fromSpecification(spec("d_bit_flip"), { memo: given, question });
  const report = async (question, given) => hex((await client(question, given)).report(7));
  const first = await report("colour", memo);
  memo.free();
  const again = await Memo.fromBytes(bytes);
  assert.equal(await report("colour", again), first);
  const others = await Promise.all(Array.from({ length: 50 }, (_, i) => report(`question ${i}`, again)));
  assert.ok(new Set(others).size > 1);
  assert.equal((await Memo.create(3)).toBytes().length, 116);

  const many = await Client.fromSpecification(LOLOHA, { memo: await Memo.create(3), question: "" });
  assert.equal(many.messages([1, 2, 3]).length, 3 * many.messageBytes);
  assert.throws(() => many.message(1), refused("parameter"));
  assert.throws(() => many.messages([1, 2, 99]), refused("data"));
});

test("another week is another collection", async () => {
  let drawn = 0;
  const random = (bytes) => {
    drawn += bytes.length;
  };
  const unary = await Client.fromSpecification(UNARY, { random });
  assert.equal(unary.specification, UNARY);
  const survey = unary.about({ question: "favourite colour" });
  const [week, next] = ["2026-W48", "2026-W49"].map((period) => survey.about({ period }));
  assert.deepEqual(JSON.parse(week.specification), {
    ...JSON.parse(UNARY),
    period: "2026-W48",
    question: "favourite colour",
  });
  assert.notEqual(week.id, next.id);
  assert.deepEqual(week.bareDigest, unary.bareDigest);
  unary.free();
  survey.free();
  assert.equal((await Client.fromSpecification(week.specification)).id, week.id);
  const counters = await Accumulator.fromSpecification(week.specification);
  counters.addMessages([next.message(7), week.message(7)]);
  assert.deepEqual([counters.n, counters.rejected], [1, 1]);
  assert.ok(drawn > 0, "the generator is that of the first client");
  for (const texts of [{ question: "cafe\u0301" }, { period: "\ud800" }, { period: 48 }, { question: null }]) {
    assert.throws(() => week.about(texts), refused("parameter"));
  }
});

test("a question has one randomiser", async () => {
  const memo = await Memo.create();
  const make = (specification, question) => Client.fromSpecification(specification, { memo, question });
  const week = (await Client.fromSpecification(LOLOHA)).about({ question: "colour", period: "2026-W48" });
  assert.throws(() => week.message(3), refused("parameter"), "it has no memo");
  (await make(week.specification, "colour")).message(3);
  assert.equal(memo.toBytes().length, 52 + 64);
  (await make(LOLOHA, "colour")).message(3);
  await assert.rejects(make(spec("d_bit_flip"), "colour"), refused("state"));
  await assert.rejects(make(week.specification, "food"), refused("parameter"));
  assert.equal(memo.toBytes().length, 52 + 64);
});

test("memos of no use are refused", async () => {
  const memo = await Memo.create();
  const bytes = memo.toBytes();
  for (const given of [hex(bytes), null, [...bytes]]) await assert.rejects(Memo.fromBytes(given), refused("parameter"));
  for (const n of [-1, 1.5, NaN, "1", 1n]) await assert.rejects(Memo.create(n), refused("parameter"));
  await assert.rejects(Memo.create(2 ** 40), refused("allocation"));
  const make = (specification, options) => Client.fromSpecification(specification, options);
  await assert.rejects(make(LOLOHA, { memo }), refused("parameter"));
  await assert.rejects(make(LOLOHA, { question: "colour" }), refused("parameter"));
  for (const question of ["\ud800", "cafe\u0301", new Uint8Array(1), null]) {
    await assert.rejects(make(LOLOHA, { memo, question }), refused("parameter"));
  }
  (await make(LOLOHA, { memo, question: "caf\u00e9" })).free();
  await assert.rejects(make(LOLOHA, { memo: bytes, question: "colour" }), refused("parameter"));
  await assert.rejects(make(UNARY, { memo, question: "colour" }), refused("parameter"));
  const client = await make(LOLOHA);
  assert.equal(client.keepsMemo, true);
  assert.throws(() => client.message(3), refused("parameter"));
});

test("nothing private stays in the module", async () => {
  const text = utf8.encode("a very private plum");
  const client = await Client.fromSpecification(SKETCH);
  client.message("a very private plum");
  client.messages(Array(100).fill("a very private plum"));
  assert.throws(() => client.messages(["a very private plum", 7]));
  assert.throws(() => client.messages(["a very private plum", "\ud800"]));
  assert.equal(occurrences(text), 0);

  const number = 0.123456789;
  const doubled = new Uint8Array(Float64Array.of(number).buffer);
  const mean = await Client.fromSpecification(MEAN);
  mean.messages([number, number]);
  assert.throws(() => mean.messages([number, 2]), refused("data"));
  assert.equal(occurrences(doubled), 0);

  const memo = await Memo.create();
  const secret = memo.toBytes().subarray(16, 48);
  assert.equal(occurrences(secret), 1, "the search finds what is there");
  const remembering = await Client.fromSpecification(LOLOHA, { memo, question: "colour" });
  remembering.message(3);
  memo.free();
  assert.equal(occurrences(secret), 1, "the client has it");
  remembering.free();
  assert.equal(occurrences(secret), 0);
});

test("no memory is lost", async () => {
  const client = await Client.fromSpecification(UNARY);
  const sizes = () => memories.map(({ buffer }) => buffer.byteLength);
  const work = () => {
    client.message(3);
    assert.throws(() => client.message(15));
    assert.throws(() => client.message("3"));
  };
  for (let i = 0; i < 100; i++) work();
  const before = sizes();
  for (let i = 0; i < 30_000; i++) work();
  for (let i = 0; i < 100_000; i++) client.message(3);
  for (let i = 0; i < 1000; i++) (await Client.fromSpecification(UNARY, { random: () => {} })).free();
  assert.deepEqual(sizes(), before);
});

test("a million reports are made in one call, and counted", async () => {
  const client = await Client.fromSpecification(UNARY);
  const n = 1_000_000;
  const messages = client.messages(Int32Array.from({ length: n }, (_, i) => (i % 4 === 0 ? 7 : 3)));
  assert.equal(messages.length, n * client.messageBytes);
  const counters = await Accumulator.fromSpecification(UNARY);
  counters.addMessages(messages);
  counters.addMessages([new Uint8Array(3), client.header]);
  const { counts, standardErrors, n: counted, rejected } = counters.estimate();
  assert.deepEqual([counted, rejected], [n, 2]);
  // 8 standard errors: by chance in less than 1 of 10^13 runs.
  counts.forEach((count, value) => {
    const expected = { 3: 0.75 * n, 7: 0.25 * n }[value] ?? 0;
    assert.ok(Math.abs(count - expected) < 8 * standardErrors[value], `${value}: ${count}`);
  });
});

test("an accumulator refuses what are no reports", async () => {
  const counters = await Accumulator.fromSpecification(UNARY);
  for (const given of [new Uint8Array(13), [[1, 2]], ["x"]]) {
    assert.throws(() => counters.addMessages(given), refused("parameter"));
  }
  assert.throws(() => counters.addReports([1]), refused("parameter"));
  assert.throws(() => counters.addReports(new Uint8Array(3)), refused("parameter"));
  assert.equal(counters.n, 0);
  const other = await Accumulator.fromSpecification(MEAN);
  assert.throws(() => counters.merge(other), DpnoiseError);
  assert.throws(() => other.estimate(), refused("parameter"));
  const state = counters.toBytes();
  await assert.rejects(Accumulator.fromBytes(state.subarray(1)), refused("state"));
  await assert.rejects(Accumulator.fromBytes("x"), refused("parameter"));
});

/** The module with a maximum, in pages of 64 KiB, on its memory. */
function withMaximum(module, pages) {
  const leb = (number) => (number < 128 ? [number] : [(number % 128) + 128, ...leb(Math.floor(number / 128))]);
  const read = (at) => {
    const [rest, end] = module[at] < 128 ? [0, at + 1] : read(at + 1);
    return [(module[at] % 128) + 128 * rest, end];
  };
  let at = 8;
  while (module[at] !== 5) {
    const [length, start] = read(at + 1);
    at = start + length;
  }
  const [length, start] = read(at + 1);
  const [fewest] = read(start + 2); // after the number of memories, and a flag
  const memory = [1, 1, ...leb(fewest), ...leb(pages)];
  const [before, after] = [module.subarray(0, at + 1), module.subarray(start + length)];
  return Buffer.concat([before, Buffer.from([...leb(memory.length), ...memory]), after]);
}

test("where memory ends there is an error, and all objects live", async () => {
  const collector = new URL("dpnoise-collector.wasm", dist);
  await load(withMaximum(readFileSync(collector), 2048));
  const client = await Client.fromSpecification(UNARY);
  const small = await Accumulator.fromSpecification(UNARY);
  small.addMessages([client.message(3)]);
  const k = 2 ** 20;
  const LARGE = UNARY.replace('"k":15', `"k":${k}`); // counters of 8 MiB, of 128 MiB
  const large = await Accumulator.fromSpecification(LARGE);
  const device = await Client.fromSpecification(LARGE);
  assert.equal(device.counterBytes, 8 * k);
  const made = [];
  const fill = async () => {
    while (made.length < 16) made.push(await Accumulator.fromSpecification(LARGE));
  };
  await assert.rejects(fill, refused("allocation"));
  for (const call of [
    () => large.addReports(new Uint8Array(k / 8)),
    () => large.addMessages([new Uint8Array(12 + k / 8)]),
    () => large.merge(made[0]),
    () => large.toBytes(),
    () => large.estimate(),
    () => device.messages(new Int32Array(256)),
  ]) {
    assert.throws(call, refused("allocation"));
  }
  await assert.rejects(Memo.create(2 ** 27), refused("allocation"));
  assert.deepEqual([large.n, small.n], [0, 1]);
  made.forEach((counters) => counters.free());
  large.addReports(device.report(3));
  small.addMessages([client.message(3)]);
  assert.deepEqual([large.n, small.n], [1, 2]);
  await load(collector);
});

/** A module that has what is asked of it at first, and then ends in a trap. */
function trapping(version) {
  const text = (name) => [name.length, ...utf8.encode(name)];
  const section = (id, ...bytes) => [id, bytes.flat().length, ...bytes.flat()];
  const exported = [["memory", 2, 0], ["dpnoise_abi_version", 0, 0], ["dpnoise_allocate", 0, 1]];
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [2, 0x60, 0, 1, 0x7f, 0x60, 1, 0x7f, 1, 0x7f]),
    ...section(3, [2, 0, 1]),
    ...section(5, [1, 0, 1]),
    ...section(7, [3, ...exported.flatMap(([name, kind, index]) => [...text(name), kind, index])]),
    ...section(10, [2, 4, 0, 0x41, version, 0x0b, 3, 0, 0x00, 0x0b]),
  ]);
}

test("other modules can be loaded, and a trap ends an instance", async () => {
  const before = await Client.fromSpecification(UNARY);
  await load(trapping(1));
  const bytes = new Uint8Array(memories.at(-1).buffer);
  bytes.fill(7);
  await assert.rejects(Client.fromSpecification(UNARY), refused("internal"));
  assert.ok(bytes.every((byte) => byte === 0), "values may have been in it");
  const started = memories.length;
  await assert.rejects(Client.fromSpecification(UNARY), refused("internal"));
  assert.equal(memories.length, started + 1, "a new instance is started");
  assert.equal(before.message(3).length, 14, "what was made before works on");

  await assert.rejects(load(trapping(2)), refused("parameter"));
  await assert.rejects(load(new Response("", { status: 404 })), refused("parameter"));
  await assert.rejects(load(new Uint8Array(8)), WebAssembly.CompileError);

  const collector = readFileSync(new URL("dpnoise-collector.wasm", dist));
  const sources = [
    collector,
    Promise.resolve(new WebAssembly.Module(collector)),
    new Response(collector),
    new URL("dpnoise-collector.wasm", dist),
    new URL("dpnoise.wasm", dist).href,
  ];
  for (const source of sources) {
    await load(source);
    assert.equal((await Client.fromSpecification(UNARY)).message(3).length, 14);
    const counters = await Accumulator.fromSpecification(UNARY);
    counters.addMessages(before.message(3));
    assert.equal(counters.n, 1);
  }
});
