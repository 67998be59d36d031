import { Memo } from "../dist/dpnoise.mjs";

function database() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("dpnoise", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("memos");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** The memo of this device, which is made and stored once. No report may be made before this has returned. */
export async function deviceMemo() {
  const [opened, made] = [await database(), await Memo.create()];
  const bytes = await new Promise((resolve, reject) => {
    // Two tabs that do this at the same time get the same memo: one transaction runs after the other.
    const transaction = opened.transaction("memos", "readwrite", { durability: "strict" });
    const store = transaction.objectStore("memos");
    const found = store.get("device");
    let kept;
    found.onsuccess = () => {
      kept = found.result ?? made.toBytes();
      if (!found.result) store.add(kept, "device");
    };
    transaction.oncomplete = () => resolve(kept);
    transaction.onabort = () => reject(transaction.error);
  });
  made.free();
  opened.close();
  return Memo.fromBytes(bytes);
}
