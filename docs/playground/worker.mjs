// All people of the playground, and their collector, away from the thread that draws.

import { Accumulator, Client, load } from "./client/dpnoise.mjs";

const BATCH = 20_000; // people between two looks at what the page wants now
const loading = load(new URL("client/dpnoise-collector.wasm", import.meta.url));
let latest;

onmessage = async ({ data }) => {
  if (data.task === "collect") latest = data;
  try {
    await loading;
    const result = await { collect, one }[data.task](data);
    if (result) postMessage({ task: data.task, id: data.id, ...result });
  } catch (error) {
    postMessage({ task: "failed", id: data.id, message: error.message });
  }
};

/** Makes the report of each person, counts it, and estimates; nothing if the page wants something else meanwhile. */
async function collect(wanted) {
  const { id, specification, people } = wanted;
  const client = await Client.fromSpecification(specification);
  const accumulator = await Accumulator.fromSpecification(specification);
  const answers = Int32Array.from(everyone(people));
  let making = 0;
  let counting = 0;
  try {
    for (let done = 0; done < answers.length; done += BATCH) {
      const started = performance.now();
      const messages = client.messages(answers.subarray(done, done + BATCH));
      const made = performance.now();
      accumulator.addMessages(messages);
      making += made - started;
      counting += performance.now() - made;
      postMessage({ task: "progress", id, share: Math.min(1, (done + BATCH) / answers.length) });
      await new Promise((resolve) => setTimeout(resolve)); // another wish may have come
      if (wanted !== latest) return undefined;
    }
    const { reportBytes, messageBytes } = client;
    return { ...accumulator.estimate(), reportBytes, messageBytes, making, counting };
  } finally {
    client.free();
    accumulator.free();
  }
}

function* everyone(people) {
  for (const [value, count] of people.entries()) {
    for (let i = 0; i < count; i++) yield value;
  }
}

/** Makes one report, and finds the values that it speaks for: a collector that has no other counts these up. */
async function one({ specification, answer }) {
  const client = await Client.fromSpecification(specification);
  const accumulator = await Accumulator.fromSpecification(specification);
  try {
    const message = client.message(answer);
    accumulator.addMessages([message]);
    const { counts } = accumulator.estimate();
    const supported = [...counts.keys()].filter((value) => counts[value] > 0);
    return { answer, supported, message, headerBytes: client.header.length, epsilon: client.epsilon };
  } finally {
    client.free();
    accumulator.free();
  }
}
