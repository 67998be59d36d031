(* The models of decisions that floating point leaves open, on integers: densities in fixed point, as fixed.rs, exp.rs,
   interval.rs and density.rs compute them, and comparisons, as refine.rs makes them. With n limbs the integer x stands
   for x / 2^(64 n), and all operations round down. *)
From Coq Require Import ZArith List Bool.
From Bignums Require Import BigZ.
From Dpnoise Require Import Sound.
Import ListNotations.
Open Scope Z_scope.

Definition unit (limbs : Z) : Z := 2 ^ (64 * limbs).
(* Coq multiplies numbers of machine words much faster than those of bits. *)
Definition times (limbs a b : Z) : Z :=
  BigZ.to_Z (BigZ.shiftr (BigZ.of_Z a * BigZ.of_Z b)%bigZ (BigZ.of_Z (64 * limbs))).
Lemma times_shifts limbs a b : times limbs a b = Z.shiftr (a * b) (64 * limbs).
Proof. unfold times. rewrite BigZ.spec_shiftr, BigZ.spec_mul, !BigZ.spec_of_Z. reflexivity. Qed.

(* 1/n! for n = 0, 1, ..., until the next is 0, from numbers with one limb more. *)
Fixpoint coefficients_from (fuel : nat) (n term : Z) : list Z :=
  match fuel with
  | O => []
  | S fuel => if term / 2 ^ 64 =? 0 then [] else term / 2 ^ 64 :: coefficients_from fuel (n + 1) (term / (n + 1))
  end.
Definition coefficients (limbs : Z) : list Z := coefficients_from (Z.to_nat (64 * limbs + 2)) 0 (unit (limbs + 1)).

(* ln 2 and log2 e. *)
Record constants := Constants { limbs : Z; ln_2 : Z; log2_e : Z; terms : list Z }.

(* 2^-t = 2^-k v up to 16 ulps of v. *)
Definition exp2_neg (c : constants) (t : Z) : Z * Z :=
  let z := times (limbs c) (unit (limbs c) - t mod unit (limbs c)) (ln_2 c) in
  (t / unit (limbs c), fold_right (fun term sum => times (limbs c) sum z + term) 0 (terms c) / 2).

(* The rate of a density, and how many ulps it may be too small. *)
Definition rate_of (c : constants) (l : law) : Z * Z :=
  let one := unit (limbs c) in
  let inverse := denominator l * one / numerator l in
  let '(factor, error) :=
    if gaussian l then (times (limbs c) inverse inverse / 2, 2 * (inverse / one) + 4) else (inverse, 1) in
  (times (limbs c) factor (log2_e c), 2 * error + factor / one + 3).

(* Bounds of 2^(-rate a b). *)
Definition power (c : constants) (l : law) (a b : Z) : Z * Z :=
  let '(rate, rate_error) := rate_of c l in
  let '(k, v) := exp2_neg c (rate * a * b) in
  let error := a * b * rate_error + 17 in
  let value := v / 2 ^ k in
  if (a =? 0) || (b =? 0) then (unit (limbs c), unit (limbs c)) else (Z.max 0 (value - error), value + error).

Inductive verdict := Decided | NeedsBits | NeedsPrecision.

(* The verdict on w and a, by their bounds at a precision; and whether U w < a, where it is decided. *)
Definition judge_bounds (limbs uniform bits : Z) (w a : Z * Z) : verdict * bool :=
  let ulps := 2 ^ (64 * limbs - bits) in
  let low_of u := times limbs u (fst w) in
  let high_of u := if fst w <? snd w then times limbs u (snd w) + 1 else low_of u in
  let '(u, next) := (uniform * ulps, (uniform + 1) * ulps) in
  let below := high_of next <=? fst a in
  if below || (snd a <=? low_of u) then (Decided, below)
  else if (high_of u <=? fst a) && (snd a <=? low_of next) then (NeedsBits, below) else (NeedsPrecision, below).

(* The answer and the bits of U that it took; None where words or steps do not suffice. Bounds are got anew for every
   precision. *)
Fixpoint is_below (steps : nat) (sides : Z -> (Z * Z) * (Z * Z)) (limbs uniform count : Z) (words : list Z)
  : option (bool * Z * Z) :=
  match steps with
  | O => None
  | S steps =>
      let '(w, a) := sides limbs in
      match judge_bounds limbs uniform (64 * count - 1) w a, words with
      | (Decided, below), _ => Some (below, uniform, count)
      | (NeedsPrecision, _), _ => is_below steps sides (2 * limbs) uniform count words
      | (NeedsBits, _), [] => None
      | (NeedsBits, _), word :: words =>
          is_below steps sides (if limbs <? count + 3 then 2 * limbs else limbs) (uniform * 2 ^ 64 + word) (count + 1)
            words
      end
  end.

(* Decisions that draw words one after another: what comes of them, and the words that are left. *)
Definition drawn (A : Type) : Type := option (A * list Z).
Definition bind {A B : Type} (first : drawn A) (next : A -> list Z -> drawn B) : drawn B :=
  match first with Some (found, words) => next found words | None => None end.
Definition decide (sides : Z -> (Z * Z) * (Z * Z)) (uniform : Z) (words : list Z) : drawn bool :=
  match is_below 9 sides 4 uniform 1 words with
  | Some (below, _, count) => Some (below, skipn (Z.to_nat (count - 1)) words)
  | None => None
  end.

(* Programs that draw words and throw coins. Coins have names: what is compared says how a program runs on words, and
   the
   probabilities of heads with which probability it gives what (Programs.v). *)
Inductive program (coin A : Type) : Type :=
  | Gives (found : A)
  | Stops
  | Draws (next : Z -> program coin A)
  | Throws (c : coin) (next : bool -> program coin A).
Arguments Gives {coin A}.
Arguments Stops {coin A}.
Arguments Draws {coin A}.
Arguments Throws {coin A}.

Fixpoint and_then {C A B : Type} (first : program C A) (second : A -> program C B) : program C B :=
  match first with
  | Gives found => second found
  | Stops => Stops
  | Draws next => Draws (fun word => and_then (next word) second)
  | Throws c next => Throws c (fun shows => and_then (next shows) second)
  end.

(* A coin takes a word for the first 63 bits of its number, and more as they are needed. *)
Fixpoint run {C A : Type} (sides : C -> Z -> (Z * Z) * (Z * Z)) (p : program C A) (words : list Z) : drawn A :=
  match p, words with
  | Gives found, _ => Some (found, words)
  | Stops, _ | _, [] => None
  | Draws next, word :: words => run sides (next word) words
  | Throws c next, word :: words =>
      bind (decide (sides c) (word / 2) words) (fun shows words => run sides (next shows) words)
  end.

(* How many times a coin shows heads before tails; an attempt again and again until it gives something; a number below
   a power of two that is kept if its coin shows heads. *)
Fixpoint heads {C : Type} (fuel : nat) (c : C) : program C Z :=
  match fuel with
  | O => Stops
  | S fuel => Throws c (fun more => if more then and_then (heads fuel c) (fun count => Gives (count + 1)) else Gives 0)
  end.
Fixpoint until_some {C A : Type} (fuel : nat) (attempt : program C (option A)) : program C A :=
  match fuel with
  | O => Stops
  | S fuel => and_then attempt (fun found =>
      match found with Some found => Gives found | None => until_some fuel attempt end)
  end.
Definition if_heads {C A : Type} (c : C) (found : A) : program C (option A) :=
  Throws c (fun kept => Gives (if kept then Some found else None)).
Definition proposal {C : Type} (bits : Z) (c : Z -> C) : program C (option Z) :=
  Draws (fun word => let low := word mod 2 ^ bits in if_heads (c low) low).

(* Bounds times a whole number, and those of a density. *)
Definition scaled (by_whole : Z) (bounds : Z * Z) : Z * Z := (fst bounds * by_whole, snd bounds * by_whole)%Z.
Definition density_bounds (l : law) (at_precision : Z -> constants) (n x : Z) : Z * Z :=
  power (at_precision n) l x (if gaussian l then x else 1).

(* What is compared: for a bin, U W < A f(x), where A is the amplitude times copies; for the tail,
   U W 2^s (1 - q) < A f(x) where it starts; for a coin, U < p. *)
Section Sides.
Variables (l : law) (at_precision : Z -> constants).

Definition complement (n : Z) (bounds : Z * Z) : Z * Z :=
  (Z.max 0 (unit n - snd bounds), Z.max 0 (unit n - fst bounds)).
Definition decay_bounds (start n k : Z) : Z * Z := power (at_precision n) l k (if gaussian l then 2 * start else 1).
Definition excess_bounds (n k : Z) : Z * Z :=
  if gaussian l then power (at_precision n) l k k else (unit n, unit n).
Definition bin_sides (weight a x n : Z) :=
  ((weight * unit n, weight * unit n), scaled a (density_bounds l at_precision n x)).
Definition tail_sides (start weight width a n : Z) :=
  (scaled weight (scaled width (complement n (decay_bounds start n 1))),
   scaled a (density_bounds l at_precision n start)).
Definition coin_sides (bounds : Z -> Z * Z) (n : Z) := ((unit n, unit n), bounds n).

(* What a tail's value lies beyond its start: low bits, high bits, and for a Gaussian a coin for what f lacks there. *)
Inductive tail_coin := Decay (start k : Z) | Excess (k : Z).
Definition sides_of_tail (c : tail_coin) : Z -> (Z * Z) * (Z * Z) :=
  coin_sides (match c with Decay start k => fun n => decay_bounds start n k | Excess k => fun n => excess_bounds n k
    end).
Definition if_excess {C : Type} (c : C) (beyond : Z) : program C (option Z) :=
  if gaussian l then if_heads c beyond else Gives (Some beyond).
Definition beyond (fuel : nat) (start shift : Z) : program tail_coin (option Z) :=
  and_then (until_some fuel (proposal shift (Decay start))) (fun low =>
  and_then (heads fuel (Decay start (2 ^ shift))) (fun high =>
  let beyond := high * 2 ^ shift + low in if_excess (Excess beyond) beyond)).

(* The value of a trial that chose the tail, if it has one. *)
Definition tail (start shift weight a uniform : Z) (negative : bool) (words : list Z) : drawn (option Z) :=
  bind (decide (tail_sides start weight (2 ^ shift) a) uniform words) (fun kept words =>
  if negb kept then Some (None, words) else
  bind (run sides_of_tail (beyond 9 start shift) words) (fun beyond words =>
  Some (option_map (fun beyond => if negative then - (start + beyond) else start + beyond) beyond, words))).
End Sides.
