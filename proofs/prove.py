"""Check the proofs of this folder with Coq, and that their models agree with the code. Run by ``make prove``.

The Rust code writes down coefficients, tables, words, and what it computes from them on each instruction set, NEON
under emulation. Coq computes all of it again with the models that the theorems are about, and checks every proof, in
target/proofs. With ``--faults`` it is shown that planted faults are refused: each changes a model, a claim or a number
that the code wrote, after which the file that is there for it must not compile.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parent
ROOT = SOURCES.parent
FOLDER = ROOT / "target/proofs"
PACKAGES = "coq libcoq-flocq libcoq-interval libcoq-gappa libcoq-coquelicot gappa"

AXIOMS = re.compile(
    r"(ClassicalDedekindReals|FunctionalExtensionality|Classical_Prop|PrimInt63|Uint63|PrimFloat|FloatAxioms)\.\w+|int|float|classic"
)
"""What theorems may rest on: classical real numbers, extensionality, and the primitive integers and floats of Coq."""

THEOREM = re.compile(r"^\| ([`*][^|]*) \| .* \| `(\w+)\.v` \|$", re.MULTILINE)
"""A row of the page that lists the theorems: names, what they say, and the file."""

CORES = os.cpu_count() or 1

ROWS = 60
"""How many rows of each list are kept where faults are planted."""


class Fault(NamedTuple):
    """A planted fault: a file's first match of a pattern is replaced, or its number raised, and a target must fail."""

    file: str
    pattern: str
    change: str | int
    target: str


FAULTS = {
    "a comparison without the unit of the prefix": Fault("Model.v", r"\(left \+ float_of weight\)", "left", "Link"),
    "the same comparison, for the proof alone": Fault("Model.v", r"\(left \+ float_of weight\)", "left", "Trial"),
    "a place of a bin": Fault("Model.v", r"12 - 48\]", "12 - 49]", "Mass"),
    "a second zero": Fault("Model.v", r"andb negative \(magnitude =\? 0\)", "false", "Link"),
    "a sign where there is none": Fault("Model.v", r"One => false", "One => Z.odd accept", "Link"),
    "one word too many of a column": Fault("Model.v", r"<\? Z.shiftr entry 6", "<=? Z.shiftr entry 6", "Mass"),
    "a result": Fault("generated/Exponentials.v", r"(\d+)\)(?=;\n)", 1, "Link"),
    "a coefficient, by its last bit": Fault("generated/Exponentials.v", r"\(true, (\d+)\)", 1, "Kernel"),
    "a coefficient, in bit 40": Fault("generated/Exponentials.v", r"c0 := \((\d+)", 1 << 12, "Exponential"),
    "an outcome": Fault("generated/Trials.v", r"; 1; 1; 0; ", "; 0; 1; 0; ", "Link"),
    "a weight": Fault("generated/Trials.v", r"(?s)tables3 :=.*?\]%Z.*?\[\d+; (\d+)", -1, "Tables"),
    "an alias column": Fault("generated/Trials.v", r"(?s)tables3 :=.*?\[(?:\d+; ){20}(\d+)", 64, "Tables"),
    "an amplitude": Fault("generated/Trials.v", r"tables12 := .*\) (\d+)\n", 1, "Tables"),
    "a rate": Fault("generated/Trials.v", r"tables4 := .*?of_bits false (\d+)", 20, "Tables"),
    "an entry at its threshold": Fault("Model.v", r"if fraction <\?", "if fraction <=?", "Link"),
    "the same threshold, for the proof alone": Fault("Model.v", r"if fraction <\?", "if fraction <=?", "Alias"),
    "the sign of another bit": Fault("Model.v", r"testbit head 7 else", "testbit head 6 else", "Link"),
    "later digits of a zero": Fault("Model.v", r"0 <\? entry else counts", "0 <=? entry else counts", "Link"),
    "a threshold": Fault("generated/Numbers.v", r"digits1 := \[Digit \[(?:\d+; ){40}(\d+)", 1, "Tables"),
    "a threshold of a Gaussian": Fault("generated/Numbers.v", r"digits7 := \[Digit \[(?:\d+; ){4}(\d+)", 9, "Tables"),
    "a sum of a Gaussian's f": Fault(
        "Sound.v", r"\(k \+ 1\)\)\) sum\) \(Whole 1\)", "(k + 1))) sum) (Whole 2)", "Alias"
    ),
    "a step": Fault("generated/Numbers.v", r"\]%Z (62) false", -1, "Tables"),
    "a side": Fault("generated/Trials.v", r"law4 := Law false true", "law4 := Law false false", "Tables"),
    "a number": Fault("generated/Numbers.v", r"false, (\d+), false\)", 1, "Link"),
    "a constant": Fault("generated/Decisions.v", r"Constants 16 (\w+)", 1, "Tables"),
    "a bound of a density": Fault("generated/Decisions.v", r", (\w+)\);\n", 1, "Link"),
    "a decision": Fault("generated/Decisions.v", r"\], false, ", "], true, ", "Link"),
    "a value of the tail": Fault("generated/Decisions.v", r"Some \((\d+)", 1, "Link"),
    "a coin for another number of high bits": Fault(
        "Integers.v", r"Decay start \(2 \^ shift\)", "Decay start 1", "Link"
    ),
    "attempts that are not made again": Fault(
        "Integers.v", r"None => until_some fuel attempt", "None => Stops", "Link"
    ),
    "the same attempts, for the proof alone": Fault(
        "Integers.v", r"None => until_some fuel attempt", "None => Stops", "Programs"
    ),
    "a coin's word without its last bit": Fault("Integers.v", r"\(word / 2\) words", "word words", "Programs"),
    "tails that count": Fault("Integers.v", r"else Gives 0\)", "else Gives 1)", "Programs"),
    "an entry of 32": Fault("Rest.v", r"proposal 6 lacking", "proposal 5 lacking", "Digits"),
    "the same entry, for the code": Fault("Rest.v", r"proposal 6 lacking", "proposal 5 lacking", "RestLink"),
    "a tail that starts elsewhere": Fault("Rest.v", r"Decay \(63 \* step d\)", "Decay (62 * step d)", "Digits"),
    "a tail from 62 on": Fault("Rest.v", r"Gives \(63 \+ beyond\)", "Gives (62 + beyond)", "RestLink"),
    "words for the digits of a zero": Fault("Rest.v", r"signed d && \(entry =\? 0\)", "false", "RestLink"),
    "a number without its sign": Fault("Rest.v", r"then - magnitude", "then magnitude", "Resolve"),
    "the words of an entry, for what it lacks": Fault(
        "Rest.v", r"then entry_words d e else 0", "then 0 else 0", "RestLink"
    ),
    "the same words, for the proof alone": Fault("Rest.v", r"then entry_words d e else 0", "then 0 else 0", "Lacking"),
    "a tail of a Gaussian without its last ulp": Fault("Rest.v", r"\(0, 2\)", "(0, 1)", "Lacking"),
    "a place of a Gaussian that no bounds have": Fault("Rest.v", r"63 \* \(Z\.sqrt", "62 * (Z.sqrt", "Lacking"),
    "a Gaussian of twice the size at 63": Fault("Sound.v", r"2 \^ 64\)\) \(term", "2 ^ 63)) (term", "Entries"),
    "a quotient that is rounded down": Fault("Rest.v", r"/ fst x \+ 1\)", "/ fst x)", "Lacking"),
    "an alias of 64": Fault("Sound.v", r"\(e <=\? 63\)", "(e <=? 64)", "Entries"),
    "a resolved number": Fault("generated/Rests.v", r"\], \((\d+)\), ", 1, "RestLink"),
    "a word of the rest that is left": Fault("generated/Rests.v", r"\), (\d+)\);", 1, "RestLink"),
    "a bit too few": Fault("Integers.v", r"64 \* count - 1\) w a", "64 * count) w a", "Refine"),
    "an ulp too few": Fault("Integers.v", r"\+ 17 in", "+ 1 in", "Fixed"),
    "a decision by the lower end": Fault("Integers.v", r"high_of next <=\?", "high_of u <=?", "Refine"),
    "a window of 2^-41": Fault("Decision.v", r"1 / 268435456\)", "1 / 2199023255552)", "Decision"),
    "an error of half the size": Fault(
        "Exponential.v", r"67 / 64 / 70368744177664", "67 / 64 / 140737488355328", "Exponential"
    ),
    "odd integers left out": Fault("Theta.v", r"part_sum \(a \+ b\) true \* part_sum \(a - b\) true \+", "", "Theta"),
    "another power": Fault("Theta.v", r"theta t 0 \^ 3\.", "theta t 0 ^ 2.", "Theta"),
    "another order": Fault("Divergence.v", r"P z / Q z\) \(a - 1\)", "P z / Q z) a", "Divergence"),
    "one way for both": Fault("Divergence.v", r"divergence_at_most a Q P", "divergence_at_most a P Q", "Divergence"),
    "outcomes of P alone": Fault("Divergence.v", r"0 < P z -> 0 < Q z", "0 < P z -> 0 <= Q z", "Divergence"),
    "all probabilities for those of a value": Fault(
        "Divergence.v", r"then P x else 0", "then P x else P x", "Divergence"
    ),
    "a divergence without its order": Fault("Zcdp.v", r"\(a \* \(IZR \(x - y\) \^ 2", "((IZR (x - y) ^ 2", "Zcdp"),
    "half the rho": Fault("Zcdp.v", r"D \^ 2 <= 2 \* rho", "D ^ 2 <= 4 * rho", "Zcdp"),
    "half the least rho": Fault("Zcdp.v", r"\^ 2 <= 2 \* rho \* sigma \^ 2\.", "^ 2 <= rho * sigma ^ 2.", "Zcdp"),
    "no steps for the rounding": Fault("Zcdp.v", r"Z\.sqrt \(.*\) \+ 1", "0", "Zcdp"),
    "a root that is rounded down": Fault("Zcdp.v", r"count - 1\) \+ 1", "count - 1)", "Zcdp"),
    "no steps for two values": Fault("Zcdp.v", r"count =\? 1", "count <=? 2", "Zcdp"),
    "steps that are rounded down": Fault("Zcdp.v", r"\(Zceil \(D / g\)", "(Zfloor (D / g)", "Zcdp"),
    "noise of one side": Fault("Zcdp.v", r"two_sided l = true -> forall", "two_sided l = false -> forall", "Zcdp"),
    "a delta without its last factor": Fault("Private.v", r" a / \(a - 1\)\) P Q", " a / a) P Q", "Private"),
    "no factor for what Q has": Fault("Private.v", r"P z - exp epsilon \* Q z", "P z - Q z", "Private"),
    "a threshold that is moved by a third": Fault("Delta.v", r"IZR a / 2 in", "IZR a / 3 in", "Delta"),
    "one threshold for both integers": Fault("Delta.v", r"above \(t \+ IZR a\)", "above t", "Delta"),
    "half the distance of two numbers": Fault("Delta.v", r"curve epsilon \(2 \* u\)", "curve epsilon u", "Delta"),
    "a tail of half the width": Fault("Delta.v", r"exp \(- \(r \^ 2 / \(2 \*", "exp (- (r ^ 2 / (1 *", "Delta"),
    "a coin at its threshold": Fault("CoinsModel.v", r"q random 0\.", "q random (Z.ones (Z.of_nat n)).", "CoinsLink"),
    "the same coin, for the proof alone": Fault(
        "CoinsModel.v", r"q random 0\.", "q random (Z.ones (Z.of_nat n)).", "Coins"
    ),
    "the threshold of the other data bit": Fault(
        "CoinsModel.v", r"true, false => Z.lxor both", "true, false => Z.lxor either", "CoinsLink"
    ),
    "the same threshold of a data bit, for the proof alone": Fault(
        "CoinsModel.v", r"true, false => Z.lxor both", "true, false => Z.lxor either", "Coins"
    ),
    "coins that are not open": Fault("CoinsModel.v", r"lanes \(t \+ 1\) \(t \+ 1\)", "lanes t t", "CoinsLink"),
    "the same open coins, for the proof alone": Fault(
        "CoinsModel.v", r"lanes \(t \+ 1\) \(t \+ 1\)", "lanes t t", "Coins"
    ),
    "further digits that are larger": Fault("CoinsModel.v", r"word <\? digits", "digits <? word", "CoinsLink"),
    "the same digits, for the proof alone": Fault("CoinsModel.v", r"word <\? digits", "digits <? word", "Coins"),
    "the first digits again": Fault("CoinsModel.v", r"n \* 2 \^ 64 mod 2", "n mod 2", "Coins"),
    "a plane too few": Fault("CoinsModel.v", r"None => 64 end", "None => 63 end", "CoinsLink"),
    "words for one digit less": Fault(
        "Coins.v", r"d <= 64 \+ 64 \* Z.of_nat m\)", "d <= 65 + 64 * Z.of_nat m)", "Coins"
    ),
    "a value kept at its threshold": Fault("CoinsModel.v", r"coin <\? Z.shiftl", "coin <=? Z.shiftl", "CoinsLink"),
    "the same value, for the proof alone": Fault("CoinsModel.v", r"coin <\? Z.shiftl", "coin <=? Z.shiftl", "Mixture"),
    "a word too many rejected": Fault("CoinsModel.v", r"mod 2\^ b <\? 2", "mod 2^ b <=? 2", "CoinsLink"),
    "no word rejected": Fault("CoinsModel.v", r"if is_rejected b k word", "if false", "Mixture"),
    "longer words for 256 values": Fault("CoinsModel.v", r"k <=\? 256", "k <=? 255", "CoinsLink"),
    "a report that is never the value by chance": Fault(
        "Mixture.v",
        r"planes - keep \+ if value =\? reported then",
        "planes - keep * k + if value =? reported then",
        "Mixture",
    ),
    "fewer rejections": Fault("Mixture.v", r"1 - 3 \^ n \* \(3/4\)", "1 - (3/4)", "Mixture"),
    "a flipped bit": Fault("generated/Flips.v", r"(?s)flips .*?, \[(\d+)[^][]*\]\);\n", 1, "CoinsLink"),
    "a word that is left": Fault("generated/Flips.v", r"Some \(\[[^]]*\], (\d+)\)", 1, "CoinsLink"),
    "a report": Fault("generated/Mixtures.v", r"Some \(\[(\d+)", 1, "CoinsLink"),
    "one threshold for both data bits": Fault("Local.v", r"flip n \(p f\) \(q f\)", "flip n (p f) (p f)", "Local"),
    "the smaller ratio of one bit": Fault(
        "Local.v", r"then \(p f, q f\) else \(not_q", "then (not_q, not_p) else (p f", "Local"
    ),
    "a row that differs in one place": Fault("Local.v", r"\(p f \* not_q, not_p \* q f\)", "(p f, q f)", "Local"),
    "a ratio without the replaced values": Fault("Local.v", r"other \+ keep \* k, other", "keep * k, other", "Local"),
    "a report of another value": Fault("Local.v", r"keep \[value\] coins", "keep [value + 1]%Z coins", "Local"),
    "half the error of a logarithm": Fault("Logarithm.v", r"2 \^ 10 \+ 16", "2 ^ 9 + 16", "Logarithm"),
    "a logarithm that is nearly at most": Fault(
        "Logarithm.v", r"left \+ error <=\? right", "left <=? right", "Logarithm"
    ),
    "a double that has no place": Fault(
        "Logarithm.v", r"then Some ulps else None", "then Some ulps else Some ulps", "Logarithm"
    ),
    "one precision alone": Fault("LocalLink.v", r"ln_at_most precisions n", "ln_at_most [constants3] n", "LocalLink"),
    "an answer about a logarithm": Fault(
        "generated/Specifications.v", r"true\)(?=;\n\(.*\n.*false)", "false)", "LocalLink"
    ),
    "a likelihood ratio": Fault("generated/Specifications.v", r"(?s)flips .*?, \((\d+)", 1, "LocalLink"),
    "a threshold of a specification": Fault("generated/Specifications.v", r"\(Flip \d+ (\d+)", -1, "LocalLink"),
    "an achieved epsilon": Fault("generated/Specifications.v", r"(?s)mixtures .*?\), \d+, (\d+)", 1, "LocalLink"),
    "an epsilon that is not enough": Fault(
        "generated/Specifications.v", r"(?s)mixtures .*?\), (\d+), ", -(10**14), "LocalLink"
    ),
    "a keep of a specification": Fault(
        "generated/Specifications.v", r"(?s)mixtures .*?\(\d+, \d+, (\d+)", 1, "LocalLink"
    ),
    "a block that begins in another": Fault(
        "Blocks.v", r"blocks l \(start \+ Z.of_nat \(size l\)\)", "blocks l start", "Blocks"
    ),
    "further words among those of the blocks": Fault(
        "Blocks.v", r"range behind \(further", "range start (further", "Blocks"
    ),
    "offset words among bin words": Fault("Blocks.v", r"\(start \+ lanes \* width\)", "start", "Blocks"),
    "a store that is given out again": Fault("Blocks.v", r"\(base \+ capacity, 0\) in", "(base, 0) in", "Blocks"),
    "blocks that nobody needs": Fault(
        "Blocks.v", r"\(if missing <\? 256 then 1%nat else 4%nat, planar", "(4%nat, planar", "BlocksLink"
    ),
    "a number of a loop": Fault("generated/Loops.v", r"\(digits2, \d+, \[-?(\d+)", 1, "BlocksLink"),
    "a coin of a loop": Fault("generated/Loops.v", r"\(1%nat, 1, \d+%nat, (\w+)", 1, "BlocksLink"),
    "a weight that is not raised": Fault("Weights.v", r"integer_of rounder \+ 1\)", "integer_of rounder)", "Weights"),
    "a weight that is not limited": Fault("Weights.v", r"Z.min largest \(", "Z.max 0 (", "Weights"),
    "a weight without its margin": Fault("Weights.v", r"0x1.0000000001p0", "0x1p0", "Weights"),
    "a weight of its own": Fault("generated/Selections.v", r"weights0 := \[\n\(0, (\d+)", -1, "SelectionLink"),
    "a carry that is not waited for": Fault("Uniform.v", r"wide <=\? fraction", "wide <? fraction", "Uniform"),
    "a carry for another sum": Fault("Uniform.v", r"sum =\? wide - 1", "sum =? wide", "Uniform"),
    "a number on the item before": Fault("Candidates.v", r"if v <\? length", "if v <=? length", "Selection"),
    "a head at its weight": Fault("Candidates.v", r"word 13 <\?", "word 13 <=?", "Selection"),
    "the same head, for the link alone": Fault("Candidates.v", r"word 13 <\?", "word 13 <=?", "SelectionLink"),
    "lengths that are rounded down": Fault(
        "Candidates.v", r" \+ \(largest - 1\)\) / largest", ") / largest", "Selection"
    ),
    "rows for columns": Fault("Candidates.v", r"map in_columns blocks", "blocks", "SelectionLink"),
    "a second coin of the first one's weight": Fault(
        "Candidates.v", r"times n \(part \(weight rate \(weighed p\)\) 51 n\)", "times n (unit n)", "SelectionLink"
    ),
    "a choice": Fault("generated/Selections.v", r"(?s)choices := .*?\(\d+, \d+, (\d+)", 1, "SelectionLink"),
    "a number below n": Fault("generated/Selections.v", r"(?s)whole_numbers := .*?\], (\d+)", 1, "SelectionLink"),
    "another law of zero": Fault("Mass.v", r"\(x =\? 0\)%Z \|\| Bool", "Bool", "Mass"),
    "a cost that is not added": Fault(
        "Filters.v", r"granted filter \(cost :: paid\)", "granted filter paid", "Filters"
    ),
    "a refusal after drawing": Fault(
        "Filters.v", r"else granted filter paid refused", "else Ask cost release answered Stop", "Filters"
    ),
    "a budget of delta that is not checked": Fault("Filters.v", r" && within d snd costs", "", "Filters"),
    "delta for each order": Fault("Filters.v", r"d / INR \(length orders\)\)", "d)", "Filters"),
    "an odometer without its slack": Fault("Filters.v", r"ln \(1 / d\) / k\) data", "0) data", "Filters"),
    "an accountant's delta": Fault("Filters.v", r"14 / 75 <= d", "15 / 75 <= d", "Filters"),
    "an odometer for the end alone": Fault(
        "Filters.v", r"y\) x then true", "y) x then match p with Stop => true | _ => false end", "Filters"
    ),
    "a budget of an order with another sign": Fault(
        "Filters.v", r"- ln \(1 - 1 / a\)\.", "+ ln (1 - 1 / a).", "Filters"
    ),
    "an exception that is not added": Fault(
        "Filters.v", r"\(rho1 \+ rho2\) \(d1 \+ d2\)", "(rho1 + rho2) d2", "Filters"
    ),
    "rho without the square": Fault("Divergence.v", r"\(i \+ j\) \^ 2\)", "(i ^ 2 + j ^ 2))", "Divergence"),
    "the same for a person": Fault("Persons.v", r"rho \* INR m \^ 2", "rho * INR m", "Persons"),
    "a share of delta": Fault(
        "Persons.v", r"d \* \(exp \(INR m \* e\) - 1\) / \(exp e - 1\)\)", "INR m * d)", "Persons"
    ),
    "a choice that looks at other persons": Fault(
        "Persons.v", r"choice s i \(rows_of i t\)", "choice s i t", "Persons"
    ),
    "a choice by places in the table": Fault("Persons.v", r"length \(rows_of i before\)", "length before", "Persons"),
    "as many rows to come as before": Fault("Persons.v", r"sampled \(s - 1\) keep", "sampled s keep", "Persons"),
    "a full group too many": Fault("Persons.v", r"Nat.min k \(m / r\)", "Nat.min k (S (m / r))", "Persons"),
    "a rest of more than a group": Fault("Persons.v", r"if full r k m <\? k", "if true", "Persons"),
    "the delta of one value for keys": Fault(
        "Keys.v", r"Rmax \(1 - hidden m\) \(1 - hidden 1 \^ m\)", "1 - hidden m", "Keys"
    ),
    "the delta of one row for keys": Fault("Keys.v", r"Rmax \(1 - hidden m\)", "Rmax (1 - hidden 1)", "Keys"),
    "values without rows that are shown": Fault("Keys.v", r"O, None => 1 \| O, Some _ => 0 \| ", "", "Keys"),
    "a distribution function a step too far": Fault("Keys.v", r"q \^ Z.to_nat \(n \+ 1\)", "q ^ Z.to_nat n", "Keys"),
    "a coin of half its probability": Fault(
        "Choices.v", r"exp \(- \(\(best scores - r\) / b\)\)", "exp (- ((best scores - r) / b)) / 2", "Choices"
    ),
    "coins that do not know the best": Fault("Choices.v", r"best scores - r", "0 - r", "Choices"),
    "a choice that does not count heads": Fault("Choices.v", r"then / INR \(heads_of heads\)", "then 1", "Choices"),
    "a run without its length": Fault("Choices.v", r"INR length \* exp", "exp", "Choices"),
    "half the scale": Fault("Choosing.v", r"then 1 else 2", "then 1 else 1", "Choosing"),
    "a sensitivity that is rounded down": Fault("Choosing.v", r"Zceil", "Zfloor", "Choosing"),
    "monotonic scores that fall and rise": Fault(
        "Choosing.v", r"0 <= s' - s <= sensitivity", "Rabs (s' - s) <= sensitivity", "Choosing"
    ),
    "scores raised by another best": Fault(
        "Choosing.v", r"best rounded - limit", "2 * best rounded - limit", "Choosing"
    ),
    "all of epsilon in each round": Fault("Choosing.v", r"epsilon / INR \(length chosen\)", "epsilon", "Choosing"),
    "half the rho of a choice": Fault("Choosing.v", r"epsilon \^ 2 / 8", "epsilon ^ 2 / 16", "Choosing"),
    "the sensitivity on one side": Fault("Quantiles.v", r"Z.max part \(whole - part\)", "part", "Quantiles"),
    "a replaced row that counts once": Fault(
        "Quantiles.v", r"Substitute => whole", "Substitute => Z.max part (whole - part)", "Quantiles"
    ),
    "a gap on the right from its lower end": Fault(
        "Quantiles.v", r"step k else step k \+ 1", "step k else step k", "Quantiles"
    ),
    "no gap on the left": Fault("Quantiles.v", r"whole \* i <=\? target", "whole * i <? target", "Quantiles"),
    "missing values that count as gaps": Fault("Quantiles.v", r"\+ whole \* Z.of_nat before\.", "+ 0.", "Quantiles"),
    "far gaps by the score of another": Fault("Quantiles.v", r"length below \+ k\)", "k)", "Quantiles"),
    "a gap without its length": Fault(
        "Quantiles.v", r"\(Z.to_nat \(step \(S k\) - step k\), in", "(1%nat, in", "Quantiles"
    ),
    "a row on both sides": Fault("Quantiles.v", r"x <\? place\)\) rows", "x <=? place)) rows", "Quantiles"),
    "no answer where there is no room": Fault("Quantiles.v", r"then next low", "then 0%R", "Quantiles"),
    "a replaced row that pays once": Fault(
        "Quantiles.v", r"Substitute => epsilon / 2", "Substitute => epsilon", "Quantiles"
    ),
    "the cheaper path": Fault("Quantiles.v", r"Rmax \(cost before\)", "Rmin (cost before)", "Quantiles"),
    "proposals that are always accepted": Fault(
        "Choosing.v", r"\(nth i weights 0 / nth i proposed 0\)", "1", "Choosing"
    ),
    "a choice that may be made again": Fault("Choices.v", r"_ :: l, O => l", "a :: l, O => a :: l", "Choosing"),
    "an entry of the next page": Fault("PagesModel.v", r"page =\? own", "page =? own + 1", "PagesLink"),
    "62 entries of a page": Fault("PagesModel.v", r"63 \* page \+ entry\)\)", "62 * page + entry))", "PagesLink"),
    "the sign of another bit, with pages": Fault("PagesModel.v", r"\(snd second\) 7", "(snd second) 6", "PagesLink"),
    "an entry in the page that was not drawn": Fault(
        "PagesModel.v", r"page \(entry_in tables page second\)", "page entry", "PagesLink"
    ),
    "the first magnitude beyond the pages": Fault("PagesModel.v", r"63 \* Z.of_nat", "62 * Z.of_nat", "PagesLink"),
    "the same magnitude again": Fault("PagesModel.v", r"\(magnitude \+ 1\)", "magnitude", "PagesLink"),
    "a coin of what is lacking, not of half": Fault("PagesModel.v", r"=> 1 \| _ => 2", "=> 1 | _ => 1", "PagesLink"),
    "counts that are one less": Fault("Pages.v", r"p e - 1/2\)", "p e - 3/2)", "Pages"),
    "a coin of what is lacking, for the proof": Fault("Pages.v", r"pages page / 2", "pages page / 3", "Pages"),
    "coins beyond the pages": Fault("Pages.v", r"/ at_least P \(Z", "/ at_least P (1 + Z", "Pages"),
    "what lies beyond the pages": Fault("Pages.v", r"then at_least P \(63 \* N\) else", "then 0 else", "Pages"),
    "a step of the staircase": Fault("Staircase.v", r"\(x \+ w - i\) / w", "(x + w - i + 1) / w", "Staircase"),
    "a bound of a count": Fault("Staircase.v", r"2 \* count \+ 3", "2 * count + 5", "Staircase"),
    "a page's threshold": Fault("generated/PageRows.v", r"staircase0 := table \[(?:\d+; ){2}(\d+)", 1, "PagesTables"),
    "an entry's threshold": Fault("generated/PageRows.v", r"staircase2 := table \[(?:\d+; ){9}(\d+)", 1, "PagesTables"),
    "a number of a page": Fault("generated/PageRows.v", r", (?:true|false), (\d+)\);\n", 1, "PagesLink"),
    "a number that has a rest": Fault("generated/PageRows.v", r"\], \((\d+)\), ", 1, "PagesLink"),
    "the words that a rest takes": Fault("generated/PageRows.v", r"\], \(\d+\), (\d+)\)", 1, "PagesLink"),
    "a bound of what is lacking": Fault(
        "generated/PageRows.v", r"staircase_lacks := \[\[\(0, \((\w+)", 1 << 150, "PagesLink"
    ),
    "a bound beyond the pages": Fault(
        "generated/PageRows.v", r"skellam_here := \[\(\d+, \((\w+)", -(1 << 150), "PagesLink"
    ),
}


def main() -> None:
    """Check, and with ``--faults`` plant faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", action="store_true", help="plant faults, each of which must be refused")
    faults = parser.parse_args().faults
    if shutil.which("coq_makefile") is None or shutil.which("gappa") is None:
        print(f"SKIPPED, nothing was proved: no Coq with its libraries (Debian: {PACKAGES})")
        return
    for source in [SOURCES / "_CoqProject", *SOURCES.glob("*.v")]:
        place(FOLDER / source.name, source.read_text())
    link()
    listed = (SOURCES / "_CoqProject").read_text().split()
    unlisted = [path.name for path in SOURCES.glob("*.v") if path.name not in listed]
    if unlisted:
        sys.exit(f"not in _CoqProject: {unlisted}")
    before = seconds()
    result = compile_all(FOLDER)
    if result.returncode:
        sys.exit(result.stdout + result.stderr)
    report(before)
    if faults:
        plant()


def place(path: Path, text: str) -> None:
    """Write a file where it is another one, so that nothing is proved twice."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def link() -> None:
    """Have the code write what it computes, and take that over where all instruction sets agree."""
    files = [computed(), computed("aarch64")]
    for name, text in files[0].items():
        if files[1] and text != files[1][name]:
            sys.exit(f"{name} of an emulated aarch64 is not what this machine writes: see target/proof-data")
        place(FOLDER / "generated" / name, text)


def computed(*target: str) -> dict[str, str]:
    """Return the files that the code writes, none where it cannot run."""
    folder = ROOT.joinpath("target/proof-data", *target or ["native"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    output = subprocess.run(
        ["proofs/data.sh", folder, *target], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    print("instruction sets:" if "SKIPPED" not in output else "aarch64:", output.strip())
    return {} if "SKIPPED" in output else {path.name: path.read_text() for path in sorted(folder.glob("*.v"))}


def compile_all(folder: Path, target: str = "all", jobs: int = CORES) -> subprocess.CompletedProcess[str]:
    """Compile the files of a folder, or one and what it needs."""
    subprocess.run(["coq_makefile", "-f", "_CoqProject", "-o", "CoqMakefile"], cwd=folder, check=True)
    command = ["make", "--no-print-directory", "-f", "CoqMakefile", f"-j{jobs}", target]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def seconds() -> float:
    """Return the processor time of commands so far."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def report(before: float) -> None:
    """Print how many inputs model and code agree on, the theorems, and what they rest on, which must be known."""
    files = [path.stem for path in sorted(SOURCES.glob("*.v"))]
    theorems = [
        f"{file}.{name}"
        for names, file in THEOREM.findall((ROOT / "docs/proofs/proved.md").read_text())
        for name in re.findall(r"\w+", names)
    ]
    linked = [file for file in files if "Definition counts :=" in (SOURCES / f"{file}.v").read_text()]
    (FOLDER / "Statements.v").write_text(
        "\n".join(
            [
                "Set Printing Width 120.",
                "From Coq Require Import String List Reals ZArith.",
                "Import ListNotations.",
                f"From Dpnoise Require {' '.join(files)}.",
                *(f"Eval vm_compute in {file}.counts." for file in linked),
                "From Coquelicot Require Import Coquelicot.",
                f"From Dpnoise Require Import {' '.join(files)}.",
                "Open Scope R_scope.",
                *(f"About {theorem}." for theorem in theorems),
                f"Definition all := {''.join(f'let _ := @{theorem} in ' for theorem in theorems)}tt.",
                "Print Assumptions all.",
            ]
        )
    )
    command = ["coqc", "-R", ".", "Dpnoise", "-w", "-ambiguous-paths", "Statements.v"]
    output = subprocess.run(command, cwd=FOLDER, check=True, stdout=subprocess.PIPE, text=True).stdout
    statements, _, axioms = output.partition("Axioms:\n")
    print(re.sub(r"\n(Arguments.*(\n  .*)*|.* is (opaque|not universe|transparent).*|Expands.*)", "", statements))
    names = re.findall(r"^(\S+)", axioms, re.MULTILINE)
    strange = [name for name in names if not AXIOMS.fullmatch(name)]
    if strange or not names:
        sys.exit(f"axioms that no theorem may rest on: {strange}")
    print(f"{len(names)} axioms:", " ".join(names))
    lines = {path: len(path.read_text().splitlines()) for path in FOLDER.rglob("*.v")}
    generated = sum(count for path, count in lines.items() if path.parent != FOLDER)
    print(
        f"{len(theorems)} theorems, {sum(lines.values()) - generated} lines, {generated} more that the code wrote; "
        f"{seconds() - before:.0f} s of processor time"
    )


def plant() -> None:
    """Plant the faults, where there are fewer rows."""
    base = ROOT / "target/proof-faults/none"
    shutil.rmtree(base.parent, ignore_errors=True)
    shutil.copytree(FOLDER, base, ignore=shutil.ignore_patterns("*.vo*", "*.glob", ".*", "Statements.v"))
    for path in base.glob("generated/*.v"):
        path.write_text(re.sub(rf"(\[\n(?:.*;\n){{{ROWS}}}.*);\n(?:[\d(].*;\n)+.*\]", r"\1]", path.read_text()))
    if compile_all(base).returncode:
        sys.exit("the proofs fail without a fault, with fewer rows")
    with ThreadPoolExecutor(CORES) as pool:
        missed = sum(not refused for refused in pool.map(lambda name: is_refused(base, name), FAULTS))
    if missed:
        sys.exit(f"{missed} planted faults were not refused")


def is_refused(base: Path, name: str) -> bool:
    """Plant a fault in a copy, and say what comes of it."""
    fault, copy = FAULTS[name], base.with_name(re.sub(r"\W+", "_", name))
    shutil.copytree(base, copy)
    path = copy / fault.file
    text = path.read_text()
    found = re.search(fault.pattern, text)
    if found is None:
        print(f"MISSED: {name}: nothing to change")
        return False
    group = 0 if isinstance(fault.change, str) else 1
    changed = fault.change if isinstance(fault.change, str) else str(int(found[1], 0) + fault.change)
    path.write_text(text[: found.start(group)] + changed + text[found.end(group) :])
    errors = compile_all(copy, f"{fault.target}.vo", jobs=1).stderr
    shutil.rmtree(copy)
    refused = re.search(rf'File "\./({fault.target}\.v)", line (\d+).*\n(?:.*\n)*?Error', errors)
    print(f"refused: {name} ({refused[1]}, line {refused[2]})" if refused else f"MISSED: {name}: {errors}")
    return refused is not None


if __name__ == "__main__":
    main()
