/**
 * Reports with local differential privacy, made on the device, in browsers and node.
 *
 * Values are private: no error shows one, and copies of them in WebAssembly are wiped. What a JavaScript engine does
 * with them is its own affair.
 */

/** Why a call failed. Nothing was reported. The message has no private data, and may be logged. */
export class DpnoiseError extends Error {
  /**
   * - `parameter`: a public argument is of the wrong kind or outside its range
   * - `data`: a value cannot be reported on; the message does not say which one
   * - `state`: a specification, memo or state is damaged, or of another kind
   * - `randomness`: the source of randomness is missing or failed; `cause` is what it threw
   * - `handle`: the object was freed
   * - `allocation`: there is not enough memory; all objects are as they were
   * - `internal`: a defect of the library; all objects made before are lost
   */
  readonly status: "parameter" | "data" | "state" | "randomness" | "handle" | "internal" | "allocation";
  private constructor();
}

/** The WebAssembly module: its address, the answer to a request for it, its bytes, or the compiled module. */
export type Source = string | URL | Response | BufferSource | WebAssembly.Module;

/**
 * Chooses the WebAssembly module for everything that is made from now on. Without this call, what is made first loads
 * `dpnoise.wasm` beside this script, and accumulators load `dpnoise-collector.wasm`. That one serves clients, too, so
 * a page that also collects loads it alone: `await load(new URL("dpnoise-collector.wasm", ...))`.
 *
 * Errors of the network, and of a content security policy without `'wasm-unsafe-eval'`, are passed on.
 */
export function load(source: Source | Promise<Source>): Promise<void>;

/**
 * The secrets of people who answer with a protocol in which they keep a memo, and how they answer each question. Store
 * its bytes after `Client.fromSpecification`, before a report is sent.
 */
export class Memo {
  private constructor();

  /** Draws the secrets of `n` people. A device makes one for its person, once. */
  static create(n?: number): Promise<Memo>;

  /**
   * Reads what `toBytes` wrote. Damaged bytes are refused (`state`): a device that then makes a new memo answers
   * anew, which costs its epsilon again.
   */
  static fromBytes(bytes: Uint8Array): Promise<Memo>;

  /** The memo to be stored: 52 bytes for one person, and 64 for each question. Whoever has them has the secrets. */
  toBytes(): Uint8Array;

  /** Wipes the secrets. Clients that were made with this memo keep them until they are freed. */
  free(): void;
}

/** What a value may be: `takes` of the client says which. */
export type Value = number | bigint | boolean | string;

/** Values of many people. */
export type Values =
  | readonly number[]
  | readonly bigint[]
  | readonly boolean[]
  | readonly string[]
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/** Properties of the object itself count, and none that it inherits. */
export interface Limit {
  /**
   * The most bytes of counters, in a collector, that a specification or a state may have; 128 MiB if not given, as a
   * short specification may ask for much memory. More is refused (`parameter`).
   */
  limit?: number;
}

/** Properties of the object itself count, and none that it inherits. */
export interface ClientOptions extends Limit {
  /** The memo of the people who answer, for protocols in which they keep one. It may be freed afterwards. */
  memo?: Memo;
  /**
   * The words of the question: the same each time it is asked, and others for another question. Given with `memo`, in
   * Unicode's normal form NFC, since two spellings of a text would be two questions; if the specification names a
   * question, this one. The memo keeps in mind how the question is answered, and another randomiser, which would cost
   * epsilon again, is refused (`state`).
   */
  question?: string;
  /** For tests: fills its argument with random bytes, in place of `crypto.getRandomValues`, or throws. */
  random?: (bytes: Uint8Array) => void;
}

/** Properties of the object itself count, and none that it inherits. */
export interface About {
  /** What is asked: at most 255 bytes of UTF-8 in Unicode's normal form NFC. That of the client if not given, or empty. */
  question?: string;
  /** The time in which each person sends one report, such as `2026-W48`: at most 63 bytes; the same. */
  period?: string;
}

/** Makes the reports of a device. */
export class Client {
  private constructor();

  /**
   * Reads a specification. Give its text or its bytes as they came: never what was parsed and written again. Or give a
   * document with a specification and its labels.
   *
   * A specification that is damaged, promises more privacy than its probabilities give, or has other labels than the
   * document, is refused (`state`). Its epsilon and delta are chosen by whoever announced it: compare both with what you
   * promise to people.
   */
  static fromSpecification(specification: string | Uint8Array, options?: ClientOptions): Promise<Client>;

  /**
   * Makes a client of the same randomiser for another collection, without a memo. A device that has its specification
   * built in writes the period from its own clock. Texts with a space at either end, or with characters that are not
   * seen, are refused (`parameter`).
   */
  about(options: About): Client;

  /** The specification, as `fromSpecification` reads it. */
  readonly specification: string;

  /**
   * The SHA-256 of the specification without labels, question and period: of how reports are made. Whoever answers a
   * question with another randomiser spends epsilon again.
   */
  readonly bareDigest: Uint8Array;

  /**
   * What values are: `"integers"` from 0 to k - 1, below 2^bits for prefixes, or 0 for no and 1 for yes; `"numbers"`
   * in [-1, 1] or within the bounds of the document for means and in [0, 1] for distributions; or `"texts"`. A protocol
   * of several `"attributes"` is for collectors: its reports are not made here.
   */
  readonly takes: "integers" | "numbers" | "texts" | "attributes";

  /** Whether people keep a memo: then give `memo` and `question`. */
  readonly keepsMemo: boolean;

  /** The number of values; of columns for sketches, and of bits for RAPPOR. */
  readonly k: number;

  /** The epsilon of a report, rounded up; of all reports on one value together where people keep a memo. */
  readonly epsilon: number;

  /** The delta of a report, beside epsilon: 0 for most protocols. */
  readonly delta: number;

  /** The id of the specification: 16 hexadecimal digits. */
  readonly id: string;

  /** The 12 bytes of a message before its report. */
  readonly header: Uint8Array;

  /** The length of a report. */
  readonly reportBytes: number;

  /** The bytes of the counters of an accumulator. */
  readonly counterBytes: number;

  /** The length of a message: 12 more. */
  readonly messageBytes: number;

  /** Reports on a value: what a device sends. For protocols with a memo, one of the memo's person. */
  message(value: Value): Uint8Array;

  /** As `message`, without the header that tells the collector which protocol it is of. */
  report(value: Value): Uint8Array;

  /** Reports on the values of many people: row i, of `messageBytes` bytes, is the message of person i. */
  messages(values: Values): Uint8Array;

  /** As `messages`, with rows of `reportBytes` bytes. */
  reports(values: Values): Uint8Array;

  /** Gives memory back, and wipes secrets. Objects that are forgotten are freed some time later. */
  free(): void;
}

/** What a collector knows: how many people have each value. */
export interface Estimate {
  /** An unbiased estimate for each value, which may be negative; those of no and of yes for randomized response. */
  counts: Float64Array;
  /** The standard error of each. */
  standardErrors: Float64Array;
  /** The number of reports counted. */
  n: number;
  /** The number of messages or reports that were refused. */
  rejected: number;
}

/** What a collector knows of people's numbers. */
export interface MeanEstimate {
  /** An unbiased estimate of their mean, which may be outside of [-1, 1]. */
  mean: number;
  /** Its standard error. */
  standardError: number;
  /** The number of reports counted. */
  n: number;
  /** The number of messages or reports that were refused. */
  rejected: number;
}

/** What a collector knows of the distribution of people's numbers. */
export interface DensityEstimate {
  /** The shares of people in k bins, which are evenly spaced from 0 to 1; their sum is 1. */
  probabilities: Float64Array;
  /** The number of reports counted. */
  n: number;
  /** The number of messages or reports that were refused. */
  rejected: number;
}

/** Frequent values, the most frequent first. */
export interface HeavyHitters {
  values: BigInt64Array;
  /** An unbiased estimate of how many people have each. */
  counts: Float64Array;
  /** The standard error of each. */
  standardErrors: Float64Array;
  /** Whether all significant prefixes were extended. If not, there were more of them than can be tried. */
  complete: boolean;
  /** The number of reports counted. */
  n: number;
  /** The number of messages or reports that were refused. */
  rejected: number;
}

/** Counts messages. It needs `dpnoise-collector.wasm`. */
export class Accumulator {
  private constructor();

  /** Makes empty counters for the messages of a protocol, by its specification or a document. */
  static fromSpecification(specification: string | Uint8Array, options?: Limit): Promise<Accumulator>;

  /** Reads what `toBytes` wrote, here or in another language. */
  static fromBytes(bytes: Uint8Array, options?: Limit): Promise<Accumulator>;

  /** The number of reports counted. */
  readonly n: number;

  /** The number of messages or reports that were refused, since they are not of this protocol. */
  readonly rejected: number;

  /** Counts messages: one by one, or rows as `Client.messages` makes them. */
  addMessages(messages: Uint8Array | Iterable<Uint8Array>): void;

  /** Counts rows as `Client.reports` makes them. */
  addReports(reports: Uint8Array): void;

  /** Adds the counts of another accumulator of the same specification. */
  merge(other: Accumulator): void;

  /** The state, for another collector. */
  toBytes(): Uint8Array;

  /**
   * The counters of one of several attributes, by its name, for the estimates below. They are those of this moment;
   * reports cannot be added to them, and they have no bytes. Of reports that are about one attribute each, estimates are
   * about all people who reported, of whom those who reported on the attribute are a random sample.
   */
  attribute(name: string): Accumulator;

  /**
   * Estimates how many people have each value. Protocols whose reports are not counted by value are refused
   * (`parameter`): the methods below are for them, save RAPPOR, which Python decodes from its state.
   */
  estimate(): Estimate;

  /**
   * Estimates the mean of people's numbers. Protocols that are not for means are refused (`parameter`), and so is an
   * accumulator without a report.
   */
  estimateMean(): MeanEstimate;

  /**
   * Estimates how people's numbers in [0, 1] are distributed. With `smoothing`, which is the default, neighbouring bins
   * are smoothed, as the authors recommend; without it the estimate keeps peaks of single bins, and fits noise as well.
   * Protocols other than the square wave are refused (`parameter`), and so is an accumulator without a report.
   */
  estimateDensity(options?: { smoothing?: boolean }): DensityEstimate;

  /**
   * Estimates how many people have a value in each range, from the first to the last value, both included; that of a
   * value v alone is [v, v]. Protocols that are not for ranges are refused (`parameter`).
   */
  estimateRanges(ranges: Iterable<readonly [first: number, last: number]>): Estimate;

  /**
   * Estimates the smallest values that these shares of all people do not exceed; 0.5 is for the median. Protocols that
   * are not for ranges are refused (`parameter`).
   */
  estimateQuantiles(q: Iterable<number>): number[];

  /** Estimates how many people have each text. Protocols that are not sketches are refused (`parameter`). */
  estimateCandidates(texts: Iterable<string>): Estimate;

  /**
   * Finds frequent values. The result contains any value that nobody has with a probability of about 1 - `level`, which
   * is 0.95 unless given. Protocols other than prefix extension are refused (`parameter`).
   */
  estimatePrefixes(level?: number): HeavyHitters;

  /** Gives memory back. Objects that are forgotten are freed some time later. */
  free(): void;
}
