// What a page does that asks people a question: it answers once in each period, and forgets nothing when it is killed.

import { Client, Memo } from "./dpnoise.mjs";

const LARGEST_EPSILON = 1; // what people are promised: a specification that asks for more is refused

/** Runs a request in a transaction; what it writes is on the disk when this is done. */
async function stored(name, mode, ask) {
  const database = await new Promise((resolve, reject) => {
    const opening = indexedDB.open("dpnoise", 1);
    opening.onupgradeneeded = () => ["memos", "reports"].forEach((each) => opening.result.createObjectStore(each));
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(name, mode, { durability: "strict" });
      const request = ask(transaction.objectStore(name));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}

/** Adds an entry unless there is one already, which another tab may have added just now. */
async function addOnce(name, key, entry) {
  try {
    await stored(name, "readwrite", (store) => store.add(entry, key));
  } catch (error) {
    if (error.name !== "ConstraintError") throw error;
  }
}

/** The client with the memo of this person for a question, made at the first time, with how the question is answered. */
async function remembering(specification, question) {
  const client = (memo) => Client.fromSpecification(specification, { memo, question });
  const read = () => stored("memos", "readonly", (store) => store.get(question));
  if ((await read()) === undefined) {
    const memo = await Memo.create();
    await client(memo); // the memo keeps it in mind, and refuses another way later
    await addOnce("memos", question, memo.toBytes());
  }
  return client(await Memo.fromBytes(await read()));
}

/** The client for a question, by the specification that the collector announces. */
export async function clientFor(collector, question) {
  const response = await fetch(`${collector}/specification`);
  if (!response.ok) throw new Error(`no specification: ${response.status}`);
  const specification = new Uint8Array(await response.arrayBuffer()); // as it came: its id is that of these bytes
  const client = await Client.fromSpecification(specification);
  if (client.epsilon > LARGEST_EPSILON) throw new Error("the specification asks for too large an epsilon");
  const { question: asked = question } = JSON.parse(client.specification);
  if (asked !== question) throw new Error("the specification is of another question");
  return client.keepsMemo ? remembering(specification, question) : client;
}

/** Reports once in each period: what is stored first is sent, and a second report is never made. */
export async function report(collector, client, period, value) {
  const { period: own = period } = JSON.parse(client.specification);
  if (own !== period) throw new Error("the specification is of another period");
  const read = () => stored("reports", "readonly", (store) => store.get(period));
  if ((await read()) === undefined) {
    const token = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0"));
    await addOnce("reports", period, { token: token.join(""), message: client.message(value) });
  }
  return send(collector, period, await read());
}

/** Sends a report, and after a failure the same bytes again, by calling `report` again. */
async function send(collector, period, { token, message }) {
  if (message === undefined) return; // the collector has it
  const response = await fetch(`${collector}/message`, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream", "Upload-Token": token },
    body: message,
    credentials: "omit",
    referrerPolicy: "no-referrer",
  });
  if (!response.ok) throw new Error(`the report was not taken: ${response.status} ${await response.text()}`);
  await stored("reports", "readwrite", (store) => store.put({}, period));
}
