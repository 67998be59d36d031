// Reports on values, in node: node report.mjs SPECIFICATION < VALUES > MESSAGES
//
// SPECIFICATION is the file that was announced. VALUES has a value on each line. MESSAGES has a message on each line,
// in hexadecimal. In a project of your own, import "@dpnoise/client" instead.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { Client } from "../dist/dpnoise.mjs";

const client = await Client.fromSpecification(readFileSync(process.argv[2]));
if (client.epsilon > 1.5 || client.delta > 0) {
  throw new Error(`epsilon is ${client.epsilon} and delta ${client.delta}: more than people were told`);
}
for await (const line of createInterface({ input: process.stdin })) {
  const message = client.message(client.takes === "texts" ? line : Number(line));
  console.log(Buffer.from(message).toString("hex"));
}
