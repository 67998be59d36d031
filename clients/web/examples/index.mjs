// Asks a question, and sends a report on the answer. The page needs a server: `python3 -m http.server` in clients/web.

import { remembering } from "./memo.mjs";

const QUESTION = "favourite colour"; // the same words each time it is asked
// The text of the specification as it was announced: here it is a part of the application.
const SPECIFICATION =
  '{"epsilon":2.0,"epsilon_first":1.0,"g":4,"instantaneous_keep":125,"instantaneous_planes":8,"k":4,' +
  '"permanent_keep":1259,"permanent_planes":11,"prime":5,"protocol":"loloha","version":1}';
const COLLECTOR = "/reports";

const form = document.querySelector("form");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const client = await remembering(SPECIFICATION, QUESTION);
  const body = client.message(Number(new FormData(form).get("answer")));
  client.free();
  const answer = await fetch(COLLECTOR, {
    method: "POST",
    body,
    headers: { "Content-Type": "application/octet-stream" },
  });
  form.querySelector("output").textContent = answer.ok ? `${body.length} bytes were sent` : "nothing was sent";
});
