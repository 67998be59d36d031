import { Client, Memo } from "../dist/dpnoise.mjs";

function database() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("dpnoise", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("memos");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** The client for a question, with the memo of this device for it, which is made and stored once. */
export async function remembering(specification, question) {
  const [opened, made] = [await database(), await Memo.create()];
  (await Client.fromSpecification(specification, { memo: made, question })).free(); // has it keep this in mind
  const bytes = await new Promise((resolve, reject) => {
    // Two tabs that do this at the same time get the same memo: one transaction runs after the other.
    const transaction = opened.transaction("memos", "readwrite", { durability: "strict" });
    const store = transaction.objectStore("memos");
    const found = store.get(question);
    let kept;
    found.onsuccess = () => {
      kept = found.result ?? made.toBytes();
      if (!found.result) store.add(kept, question);
    };
    transaction.oncomplete = () => resolve(kept);
    transaction.onabort = () => reject(transaction.error);
  });
  made.free();
  opened.close();
  return Client.fromSpecification(specification, { memo: await Memo.fromBytes(bytes), question });
}
