// What the types of the client for the web allow and refuse: tsc --strict --noEmit.

import { Accumulator, Client, DpnoiseError, Memo, load } from "@dpnoise/client";
import type { ClientOptions, Estimate, Source, Value, Values } from "@dpnoise/client";

export async function allowed(specification: string, source: Source): Promise<Estimate> {
  await load(source);
  await load(fetch("dpnoise.wasm"));
  const memo: Memo = await Memo.create();
  const options: ClientOptions = { memo, question: "colour", random: (bytes) => bytes.fill(0) };
  const client: Client = await Client.fromSpecification(specification, options);
  const value: Value = 3;
  const message: Uint8Array = client.message(value);
  const answers: Values = [true, false];
  const rows = [client.messages(new Int32Array(2)), client.reports([1n, 2n]), client.messages(answers)];
  const week: string = client.about({ period: "2026-W48" }).about({ question: "colour" }).specification;
  const digest: Uint8Array = client.bareDigest;
  const facts: [string, number, number, number, boolean, number, number] = [
    client.id,
    client.k,
    client.epsilon,
    client.delta,
    client.keepsMemo,
    client.reportBytes,
    client.messageBytes,
  ];
  const takes: "integers" | "numbers" | "texts" | "attributes" = client.takes;
  const counters = await Accumulator.fromSpecification(new Uint8Array());
  counters.addMessages(rows);
  counters.addMessages(message);
  counters.merge(await Accumulator.fromBytes(counters.toBytes()));
  client.free();
  console.log(week, digest, facts, takes, (await Memo.fromBytes(memo.toBytes())) instanceof Memo);
  return counters.estimate();
}

export function status(error: unknown): string {
  return error instanceof DpnoiseError ? error.status : "no";
}

export async function refused(client: Client, counters: Accumulator, error: DpnoiseError): Promise<void> {
  // @ts-expect-error a client is made by fromSpecification
  new Client();
  // @ts-expect-error the text of a specification, not what was parsed
  await Client.fromSpecification({ k: 15 });
  // @ts-expect-error bytes of a memo are no memo
  await Client.fromSpecification("", { memo: new Uint8Array(), question: "" });
  // @ts-expect-error a generator fills its argument at once
  await Client.fromSpecification("", { random: 7 });
  // @ts-expect-error a period is a text
  client.about({ period: 48 });
  // @ts-expect-error one value
  client.message([3]);
  // @ts-expect-error many values
  client.messages(3);
  // @ts-expect-error facts are read only
  client.k = 16;
  // @ts-expect-error it is a promise
  const memo: Memo = Memo.create();
  // @ts-expect-error bytes
  counters.addReports([1, 2]);
  // @ts-expect-error there is no such status
  const same: boolean = error.status === "failed";
  console.log(memo, same);
}
